"""Words about signing in."""

LABELS: dict[str, tuple[str, str]] = {
    "door_title": ("Sign in to Pagelight", "登录 Pagelight"),
    "door_lead": (
        "Your conversations belong to you; nobody else sees them.",
        "您的对话只属于您，其他人看不到。",
    ),
    "door_go": ("Sign in", "登录"),
    "door_go_to": ("Sign in with {name}", "使用 {name} 登录"),
    "door_closed": ("You cannot enter here", "您无法进入"),
    "door_no_list": (
        "Nobody is admitted yet: AUTH_ALLOW is empty. Whoever runs this app lists the addresses or domains there.",
        "尚未允许任何人进入：AUTH_ALLOW 为空。请由管理员在其中列出允许的邮箱或域名。",
    ),
    "door_no_address": (
        "The account that you signed in with has no e-mail address, and it is by address that people are admitted.",
        "您登录的账号没有邮箱地址，而本应用按邮箱地址决定谁可以进入。",
    ),
    "door_unverified": (
        "The address {address} is not verified. Verify it with the account's provider, then sign in again.",
        "邮箱 {address} 尚未验证。请先在账号服务商处验证，再重新登录。",
    ),
    "door_not_listed": (
        "{address} is not on the list of those who may enter. Ask whoever runs this app, or use another account.",
        "{address} 不在允许进入的名单上。请联系管理员，或换一个账号登录。",
    ),
    "door_not_set_up": (
        "AUTH_ALLOW says who may enter, but signing in is not set up: .streamlit/secrets.toml has no [auth] section.",
        "AUTH_ALLOW 规定了谁可以进入，但尚未配置登录：.streamlit/secrets.toml 中没有 [auth] 部分。",
    ),
    "sign_out": ("Sign out", "退出登录"),
    "shared_by_all": (
        "Conversations here are shared by all who can open this app.",
        "能打开本应用的人都能看到这里的对话。",
    ),
}
