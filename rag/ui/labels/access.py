"""Words about who gets in: the name in the address, signing in."""

LABELS: dict[str, tuple[str, str]] = {
    "refused_host": (
        "This app is not served under the name {name}. Open it under one that is allowed, or have whoever runs it "
        "add this name to ALLOWED_HOSTS.",
        "本应用不以 {name} 这个名称提供服务。请使用允许的名称打开，或请管理员将它加入 ALLOWED_HOSTS。",
    ),
    "refused_origin": (
        "This request came from a page of another site or port than {name}, which this app does not answer. Behind a "
        "proxy, have it pass the Host header on unchanged.",
        "此请求来自 {name} 以外的网站或端口的页面，本应用不予响应。如在代理之后，请让代理原样传递 Host 请求头。",
    ),
    "upload_outside": (
        "Uploads are taken only from a page of this app that is open, by those who may enter.",
        "只接受来自本应用已打开页面、且已获准进入的人的上传。",
    ),
    "upload_length": ("An upload must say how many bytes it has.", "上传必须说明字节数。"),
    "upload_session": (
        "Too much at a time: at most {files} files and {megabytes} MB. Add what is uploaded first, or pack a zip.",
        "一次上传过多：最多 {files} 个文件、{megabytes} MB。请先添加已上传的文件，或打包为 zip。",
    ),
    "upload_total": (
        "Others are uploading, and together it is too much for this server. Try again in a moment.",
        "其他人正在上传，总量超出了服务器的限制。请稍后再试。",
    ),
    "upload_bounds": (
        "At most {one} MB a file, and {files} files and {all} MB at a time.",
        "每个文件最多 {one} MB，一次最多 {files} 个文件、{all} MB。",
    ),
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
    "door_unsaid": (
        "Your provider does not say whether the address {address} is yours. If it gives addresses to its own people "
        "only, whoever runs this app can name it in AUTH_VERIFIED_ISSUERS: {issuer}",
        "您的账号服务商没有说明邮箱 {address} 是否属于您。如果它只为自己的成员分配邮箱，管理员可以将它加入 "
        "AUTH_VERIFIED_ISSUERS：{issuer}",
    ),
    "door_foreign_letters": (
        "The address of your account has letters outside a to z, which this app cannot tell apart safely. Use another "
        "account, or ask whoever runs this app.",
        "您账号的邮箱含有 a 到 z 以外的字母，本应用无法可靠地加以区分。请换一个账号，或联系管理员。",
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
