"""Gates of real sites (bot checks, logins, consent …) in many wordings and both languages, and pages about such things.

`GATE_PAGES`, and `RARE_GATE_PAGES` with rarer wordings, have (code, title, body), `CONTENT` has (title, body); a body
is the inside of an HTML body.
"""

from __future__ import annotations

GATE_PAGES: list[tuple[str, str, str]] = [
    # Bot checks
    (
        "gate_captcha",
        "Just a moment...",
        '<div class="main-wrapper"><h1>www.example.com</h1><h2>Checking if the site connection is secure</h2>'
        "<div>www.example.com needs to review the security of your connection before proceeding.</div>"
        "<div>Ray ID: 7d1f0c2b9e3a</div><div>Performance &amp; security by Cloudflare</div></div>"
        '<script src="/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1"></script>',
    ),
    (
        "gate_captcha",
        "Just a moment...",
        "<noscript><p>Enable JavaScript and cookies to continue</p></noscript>"
        "<p>Verifying you are human. This may take a few seconds.</p>",
    ),
    (
        "gate_captcha",
        "Attention Required! | Cloudflare",
        "<h1>Sorry, you have been blocked</h1><h2>You are unable to access example.com</h2>"
        "<h2>Why have I been blocked?</h2><p>This website is using a security service to protect itself from online "
        "attacks. The action you just performed triggered the security solution. There are several actions "
        "that could "
        "trigger this block including submitting a certain word or phrase, a SQL command or malformed data.</p>"
        "<h2>What can I do to resolve this?</h2><p>You can email the site owner to let them know you were blocked. "
        "Please include what you were doing when this page came up and the Cloudflare Ray ID found at the bottom of "
        "this page.</p>",
    ),
    (
        "gate_captcha",
        "Robot Check",
        "<h4>Enter the characters you see below</h4><p>Sorry, we just need to make sure you're not a robot. For best "
        "results, please make sure your browser is accepting cookies.</p><form><h4>Type the characters you "
        "see in this "
        "image:</h4><button>Continue shopping</button></form>",
    ),
    (
        "gate_captcha",
        "https://www.example.com/search",
        "<p>Our systems have detected unusual traffic from your computer network. This page checks to see if it's "
        "really you sending the requests, and not a robot.</p><p>IP address: 203.0.113.9</p><p>Why did this "
        'happen?</p><div class="g-recaptcha"></div>',
    ),
    (
        "gate_captcha",
        "Access to this page has been denied",
        "<h1>Press &amp; Hold to confirm you are a human (and not a bot).</h1><p>Reference ID 4f1e2d</p>"
        '<div id="px-captcha"></div>',
    ),
    (
        "gate_captcha",
        "Pardon Our Interruption",
        "<h1>Pardon Our Interruption...</h1><p>As you were browsing something about your browser made us "
        "think you were "
        "a bot. There are a few reasons this might happen:</p><ul><li>You're a power user moving through this "
        "website "
        "with super-human speed.</li><li>You've disabled cookies in your web browser.</li><li>A third-party browser "
        "plugin is preventing JavaScript from running.</li></ul><p>To regain access, please make sure that "
        "cookies and "
        "JavaScript are enabled before reloading the page.</p>",
    ),
    (
        "gate_captcha",
        "Security check",
        "<p>Please complete the security check to access the site.</p><p>One more step</p>"
        '<iframe src="https://newassets.hcaptcha.com/captcha/v1/x.html"></iframe><p>Why do I have to complete a '
        "CAPTCHA? Completing the CAPTCHA proves you are a human and gives you temporary access to the web "
        "property.</p>",
    ),
    ("gate_captcha", "Human Verification", "<p>Let's confirm you are human</p><p>Complete the security check.</p>"),
    (
        "gate_captcha",
        "DDOS-GUARD",
        "<h1>Checking your browser before accessing example.org</h1><p>Please wait a few seconds. Once this check is "
        "complete, the website will open automatically</p>",
    ),
    (
        "gate_captcha",
        "百度安全验证",
        "<p>网络不给力，请稍后重试</p><p>返回首页</p><p>问题反馈</p>",
    ),
    (
        "gate_captcha",
        "安全验证 - 知乎",
        "<p>您当前请求存在异常，暂时限制本次访问。如有疑问，您可以通过手机摇一摇或登录后私信知乎小管家反馈。</p>",
    ),
    (
        "gate_captcha",
        "验证码",
        "<p>为了保护您的账号安全，请拖动滑块完成验证</p><div class='nc_wrapper'></div><p>请按住滑块，拖动到最右边</p>",
    ),
    ("gate_captcha", "访问验证", "<p>您的访问过于频繁，请输入图中验证码后继续访问</p><p>看不清？换一张</p>"),
    (
        "gate_captcha",
        "请稍候…",
        "<p>正在验证您是否是真人。这可能需要几秒钟时间。</p><p>继续之前需要检查您的连接的安全性。</p>",
    ),
    ("gate_captcha", "人機驗證", "<p>請完成安全驗證以繼續瀏覽</p><p>確認您是真人</p>"),
    # Missing pages with status 200
    (
        "gate_not_found",
        "Page not found - Example Store",
        "<h1>404</h1><p>The page you requested does not exist. Click here to continue shopping.</p>",
    ),
    (
        "gate_not_found",
        "Oops! That page can't be found.",
        "<h1>Oops! That page can&rsquo;t be found.</h1><p>It looks like nothing was found at this location. "
        "Maybe try a "
        "search?</p>",
    ),
    (
        "gate_not_found",
        "Example News",
        "<h1>Sorry, we couldn't find that page</h1><p>The page you're looking for may have been moved, renamed or "
        "deleted. Please check the URL and try again, or go back to the homepage.</p>",
    ),
    (
        "gate_not_found",
        "Content unavailable",
        "<p>This content isn't available right now</p><p>When this happens, it's usually because the owner "
        "only shared it "
        "with a small group of people, changed who can see it or it's been deleted.</p><a>Go to News Feed</a>"
        "<a>Go back</a>",
    ),
    (
        "gate_not_found",
        "Jobs at Example",
        "<h1>This job is no longer available</h1><p>The job you are looking for has been removed or is no "
        "longer active. "
        "Search other jobs below.</p>",
    ),
    ("gate_not_found", "Error 404", "<h1>Whoops!</h1><p>We can't seem to find the page you're looking for.</p>"),
    ("gate_not_found", "Not Found", "<p>The requested URL was not found on this server.</p>"),
    ("gate_not_found", "Shop", "<h1>Product not found</h1><p>Sorry, this product is unavailable. Back to the shop</p>"),
    ("gate_not_found", "404 错误", "<p>抱歉，您访问的页面不存在或已被删除！</p><p>5秒后自动跳转到首页</p>"),
    ("gate_not_found", "提示信息", "<p>抱歉，指定的主题不存在或已被删除或正在被审核</p><p>[ 点击这里返回上一页 ]</p>"),
    ("gate_not_found", "微信公众平台", "<p>该内容已被发布者删除</p><p>轻点两下取消赞</p>"),
    ("gate_not_found", "页面不存在", "<h1>啊哦，你要找的页面走丢了</h1><p>请检查您输入的网址是否正确，或返回首页</p>"),
    (
        "gate_not_found",
        "某某新闻网",
        "<p>很抱歉，您要访问的页面已失效，找不到该网页。</p><p>您可以返回首页继续浏览。</p>",
    ),
    ("gate_not_found", "找不到頁面", "<p>抱歉，找不到您要的頁面。</p><p>請檢查網址是否正確，或回到首頁。</p>"),
    # Pages that have moved
    ("gate_moved", "Moved", "<p>This page has moved. <a href=/new>Go on</a>.</p>"),
    ("gate_moved", "301 Moved Permanently", "<h1>Moved Permanently</h1><p>The document has moved here.</p>"),
    ("gate_moved", "Object moved", "<h2>Object moved to <a href='/new'>here</a>.</h2>"),
    ("gate_moved", "Example", "<p>Redirecting to <a href='/new'>https://example.com/new</a>…</p>"),
    (
        "gate_moved",
        "Example Docs",
        "<h1>The documentation has moved</h1><p>You will be redirected in 5 seconds. If you are not redirected "
        "automatically, follow <a href='/new'>this link</a>. Please update your bookmarks.</p>",
    ),
    ("gate_moved", "My blog", "<p>This blog is now located at <a href='/new'>https://blog.example.com/</a>.</p>"),
    ("gate_moved", "提示", "<p>页面正在跳转，请稍候……</p><p>如果没有自动跳转，请点击<a href='/new'>这里</a>。</p>"),
    ("gate_moved", "某某论坛", "<p>本站已迁移至新域名。</p><p>请点击<a href='/new'>这里</a>访问，并更新您的收藏。</p>"),
    ("gate_moved", "頁面跳轉", "<p>網頁已經移動到新地址。</p>"),
    # Consent
    (
        "gate_consent",
        "Before you continue to Example",
        "<h1>Before you continue to Example</h1><p>We use cookies and data to</p><ul><li>Deliver and maintain our "
        "services</li><li>Track outages and protect against spam, fraud and abuse</li><li>Measure audience "
        "engagement "
        "and site statistics to understand how our services are used</li></ul><p>If you choose to “Accept "
        "all”, we will "
        "also use cookies and data to</p><ul><li>Develop and improve new services</li><li>Deliver and measure the "
        "effectiveness of ads</li><li>Show personalised content, depending on your settings</li></ul>"
        "<p>If you choose to “Reject all”, we will not use cookies for these additional purposes.</p>"
        "<button>Reject all</button><button>Accept all</button><a>More options</a>",
    ),
    (
        "gate_consent",
        "Example Daily",
        "<div class='qc-cmp2-container'><h2>We value your privacy</h2><p>We and our 842 partners store and/or access "
        "information on a device, such as cookies and process personal data, such as unique identifiers and standard "
        "information sent by a device for personalised ads and content, ad and content measurement, and audience "
        "insights, as well as to develop and improve products.</p><p>With your permission we and our partners "
        "may use "
        "precise geolocation data and identification through device scanning.</p><p>MORE OPTIONS</p><p>I "
        "AGREE</p></div>",
    ),
    (
        "gate_consent",
        "Cookies",
        "<div id='onetrust-banner-sdk'><p>By clicking “Accept All Cookies”, you agree to the storing of "
        "cookies on your "
        "device to enhance site navigation, analyze site usage, and assist in our marketing efforts.</p>"
        "<p>Cookies Settings</p><p>Reject All</p><p>Accept All Cookies</p></div>",
    ),
    (
        "gate_consent",
        "Your privacy choices",
        "<p>This site uses cookies. Some are necessary, others help us improve the site and show you relevant "
        "advertising.</p><p>Manage preferences</p><p>Accept and continue</p>",
    ),
    (
        "gate_consent",
        "隐私提示",
        "<p>我们重视您的隐私。本网站使用 Cookie 来改善您的体验、分析流量并投放个性化广告。</p><p>接受全部</p>"
        "<p>拒绝全部</p><p>管理 Cookie 设置</p>",
    ),
    (
        "gate_consent",
        "用户须知",
        "<p>请您阅读并同意《隐私政策》和《用户协议》后继续使用。</p><p>同意并继续</p><p>不同意</p>",
    ),
    (
        "gate_consent",
        "隱私權",
        "<p>本網站使用 Cookie 以提供個人化內容與廣告。</p><p>接受所有 Cookie</p><p>拒絕所有</p>",
    ),
    # Logins
    (
        "gate_login",
        "Log in to Example",
        "<h1>Log in to Example</h1><form><input type='email' placeholder='Email'><input type='password'></form>"
        "<p>Forgot password?</p><p>Don't have an account? Sign up</p>",
    ),
    (
        "gate_login",
        "Sign In",
        "<h1>Sign in</h1><p>Stay updated on your professional world</p><form><input type=password></form><p>Forgot "
        "password?</p><p>New here? Join now</p><p>By clicking Continue, you agree to the User Agreement.</p>",
    ),
    (
        "gate_login",
        "Example forum",
        "<p>You must be logged in to view this page.</p><p>Please log in or register to continue.</p>"
        "<form><label>Username</label><label>Password</label><input type='password'><label>Remember me"
        "</label></form>",
    ),
    (
        "gate_login",
        "Members only",
        "<h2>This content is for members only</h2><p>Please sign in to read the full article, or subscribe today.</p>"
        "<p>Already a member? Log in</p>",
    ),
    (
        "gate_login",
        "Example • Photos",
        "<p>Log in to see photos and videos from friends.</p><p>Log in with Facebook</p><p>Forgotten your "
        "password?</p>"
        "<p>Create an account to follow others</p>",
    ),
    (
        "gate_login",
        "Single sign-on",
        "<h1>University login</h1><p>Please enter your username and password to log in.</p><input type='password'>"
        "<p>Need help? Contact the service desk</p>",
    ),
    (
        "gate_login",
        "登录",
        "<h1>用户登录</h1><form><input type='password'></form><p>短信验证码登录</p><p>忘记密码？</p>"
        "<p>还没有账号？立即注册</p>",
    ),
    (
        "gate_login",
        "某某论坛",
        "<p>抱歉，本帖要求登录后才可浏览</p><p>请先登录，或注册新账号</p><p>用户名</p><p>密码</p><p>找回密码</p>",
    ),
    (
        "gate_login",
        "统一身份认证平台",
        "<p>账号登录</p><p>扫码登录</p><input type='password'><p>忘记密码</p><p>请输入学号和密码登录</p>",
    ),
    ("gate_login", "会员中心", "<p>您需要登录后才能查看该内容</p><p>微信登录</p><p>QQ登录</p><p>手机号登录</p>"),
    ("gate_login", "登入", "<p>請先登入您的帳號</p><p>忘記密碼？</p><p>註冊新帳號</p>"),
    # Pages that need scripts
    (
        "gate_scripts",
        "Example app",
        "<p>You need to enable JavaScript to run this app.</p><div id='root'></div><script src='/main.js'></script>",
    ),
    (
        "gate_scripts",
        "Example",
        "<p>We're sorry but example doesn't work properly without JavaScript enabled. Please enable it to "
        "continue.</p>"
        "<div id='app'></div><script src='/app.js'></script>",
    ),
    (
        "gate_scripts",
        "X",
        "<h1>JavaScript is not available.</h1><p>We’ve detected that JavaScript is disabled in this browser. "
        "Please enable "
        "JavaScript or switch to a supported browser to continue.</p><script>1</script>",
    ),
    ("gate_scripts", "Dashboard", "<div id='root'><p>Loading...</p></div><script src='/main.js'></script>"),
    ("gate_scripts", "某某平台", "<p>很抱歉，当前浏览器禁用了 JavaScript，请启用后刷新页面。</p><script>1</script>"),
    ("gate_scripts", "某某系统", "<div id='app'><p>正在加载中，请稍候…</p></div><script src='/app.js'></script>"),
    # Only a menu and a footer
    (
        "gate_boilerplate",
        "Example Inc.",
        "<ul><li>Home</li><li>About us</li><li>Products</li><li>Contact</li></ul><p>© 2024 Example Inc. All rights "
        "reserved.</p><p>Privacy Policy</p><p>Terms of Use</p>",
    ),
    (
        "gate_boilerplate",
        "某某公司",
        "<p>首页</p><p>关于我们</p><p>联系我们</p><p>版权所有 © 2024 某某公司 京ICP备12345678号-1 京公网安备 "
        "11010502030000号</p>",
    ),
]

RARE_GATE_PAGES: list[tuple[str, str, str]] = [
    ("gate_captcha", "One moment, please...", "<h1>Please wait while your request is being verified...</h1>"),
    (
        "gate_captcha",
        "Client Challenge",
        "<p>JavaScript is disabled in your browser. Please enable JavaScript to proceed.</p><p>A required "
        "part of this site couldn’t load. This may be due to a browser extension, network issues, or browser "
        "settings.</p><script>1</script>",
    ),
    (
        "gate_captcha",
        "Vercel Security Checkpoint",
        "<p>We're verifying your browser</p><p>Website owner? Click here to fix</p>",
    ),
    (
        "gate_captcha",
        "Access Denied",
        '<h1>Access Denied</h1><p>You don\'t have permission to access "http://www.example.com/" on this '
        "server.</p><p>Reference #18.4d2f1002.1700000000.1a2b3c</p>",
    ),
    (
        "gate_captcha",
        "Are you human?",
        "<p>Confirm you're not a robot by checking the box</p><div class='cf-turnstile'></div>",
    ),
    ("gate_captcha", "Bot detection", "<p>We think you might be a bot. Slide to complete the puzzle.</p>"),
    (
        "gate_captcha",
        "reddit",
        "<p>You've been blocked by network security.</p><p>To continue, log in to your Reddit account or use "
        "your developer token</p><p>If you think you've been blocked by mistake, file a ticket below and "
        "we'll look into it.</p>",
    ),
    ("gate_captcha", "安全中心", "<p>为了确认本次访问为正常用户行为，需要您协助验证</p><p>点击按钮开始智能验证</p>"),
    ("gate_captcha", "登录异常", "<p>检测到您的网络环境存在异常，请完成下方的拼图验证</p>"),
    ("gate_captcha", "", "<p>请依次点击图中的文字以证明您不是机器人</p>"),
    (
        "gate_not_found",
        "BBC - Gone",
        "<h1>This page has gone missing</h1><p>Sorry, the address you entered doesn't match anything on our site.</p>",
    ),
    (
        "gate_not_found",
        "Video unavailable",
        "<p>Video unavailable</p><p>This video has been removed by the uploader</p>",
    ),
    (
        "gate_not_found",
        "Lost?",
        "<h1>You seem to be lost</h1><p>The link you followed may be broken, or the page may have been "
        "removed.</p><p>Go back home</p>",
    ),
    ("gate_not_found", "Ad expired", "<h2>This ad has expired or been deleted by its owner</h2><p>See similar ads</p>"),
    ("gate_not_found", "Repository", "<p>This is not the web page you are looking for.</p>"),
    ("gate_not_found", "", "<p>您查看的宝贝不存在，可能已下架或者被转移</p>"),
    ("gate_not_found", "豆瓣", "<p>你想访问的条目豆瓣不收录。</p><p>呃...你想访问的页面不存在</p>"),
    ("gate_not_found", "错误提示", "<p>该帖子已被作者删除或不存在</p><p>返回版块列表</p>"),
    ("gate_not_found", "", "<p>无法找到该页</p><p>您正在搜索的页面可能已经删除、更名或暂时不可用。</p>"),
    (
        "gate_consent",
        "Privacy",
        "<p>Can we use optional cookies?</p><p>Some cookies are essential. We'd like your permission for "
        "others, which help us understand how you use our site.</p><p>Yes, I agree</p><p>No, only essential</p>",
    ),
    (
        "gate_consent",
        "Zeitung",
        "<p>With advertising: visit us as usual with ads and tracking. You can withdraw your consent at any "
        "time. Accept and continue</p><p>Or subscribe without tracking</p><p>Details on cookies and "
        "processing purposes in the privacy centre.</p>",
    ),
    (
        "gate_consent",
        "",
        "<p>为向您提供更好的服务，我们会使用必要的Cookie，经您同意后也会使用分析类Cookie。</p><p>全部接受</p>"
        "<p>仅必要</p>",
    ),
    (
        "gate_login",
        "Welcome back",
        "<p>Welcome back</p><p>Email address</p><p>Continue</p><p>Don't have an account? Sign up</p><p>OR</p>"
        "<p>Continue with Google</p><p>Continue with Microsoft Account</p>",
    ),
    (
        "gate_login",
        "Subscribe to read",
        "<p>You've reached your limit of free articles.</p><p>Subscribe to continue reading.</p><p>Already a "
        "subscriber? Sign in</p>",
    ),
    (
        "gate_login",
        "Intranet",
        "<p>Authentication required. Use your staff credentials to access this resource.</p><input type=password>",
    ),
    ("gate_login", "", "<p>登录后免费查看全文</p><p>立即登录</p>"),
    ("gate_login", "知网", "<p>您还没有登录，请登录后再进行操作</p><p>记住我</p>"),
    ("gate_login", "", "<p>扫一扫登录</p><p>打开手机App扫描二维码</p><input type=password>"),
    (
        "gate_scripts",
        "",
        "<p>This website requires a modern browser with scripts enabled.</p><div id=root></div><script>1</script>",
    ),
    ("gate_scripts", "App", "<p>Loading application data, please wait</p><div id='app'></div><script>1</script>"),
    ("gate_scripts", "", "<p>本站需要开启 JavaScript 支持才能正常浏览</p>"),
    (
        "gate_boilerplate",
        "Acme",
        "<p>Home | About | Careers | Contact</p><p>Copyright 2023 Acme Ltd. All rights reserved. Terms and "
        "conditions. Privacy notice.</p>",
    ),
    (
        "gate_captcha",
        "",
        "<p>Hold on, we're making sure you're a real visitor</p><p>This process is automatic. Your browser "
        "will redirect to your requested content shortly.</p>",
    ),
    ("gate_captcha", "Validate request", "<p>Please solve this CAPTCHA to request unblock to the website</p>"),
    (
        "gate_captcha",
        "",
        "<p>Your IP address has been flagged for suspicious behaviour. Contact support with incident ID 8273</p>",
    ),
    (
        "gate_captcha",
        "403",
        "<p>Request blocked. We can't connect to the server for this app or website at this time. There might "
        "be too much traffic or a configuration error.</p>",
    ),
    ("gate_captcha", "滑动验证页面", "<p>通过验证以确保正常访问</p>"),
    ("gate_captcha", "", "<p>系统检测到您的访问行为异常，请完成以下操作后继续</p><p>向右拖动滑块填充拼图</p>"),
    ("gate_captcha", "", "<p>机器人验证</p><p>请勾选下方复选框</p>"),
    ("gate_not_found", "", "<h1>Nothing to see here</h1><p>We looked everywhere but this page is gone.</p>"),
    (
        "gate_not_found",
        "Example Docs",
        "<h1>We couldn't find what you're looking for</h1><p>It may have moved. Try the search or the table "
        "of contents.</p>",
    ),
    ("gate_not_found", "Store", "<p>This item is no longer sold. Here are some alternatives you might like.</p>"),
    ("gate_not_found", "Post deleted", "<p>This post was deleted by the person who originally posted it.</p>"),
    ("gate_not_found", "", "<p>哎呀，页面找不到了</p><p>可能是链接有误，去首页看看吧</p>"),
    ("gate_not_found", "", "<p>您访问的商品已下架，看看其他商品吧</p>"),
    ("gate_not_found", "", "<p>此微博已被作者删除。查看帮助</p>"),
    ("gate_not_found", "", "<p>该页面暂时无法访问，请稍后再试</p>"),
    (
        "gate_consent",
        "Cookie wall",
        "<p>Your data, your experience. By clicking I accept, you consent to the use of cookies by us and our "
        "234 partners. You may change your mind at any time.</p><p>I accept</p><p>Show purposes</p>",
    ),
    (
        "gate_consent",
        "",
        "<p>Diese Seite verwendet Cookies.</p><p>We use cookies to personalise content and ads, to provide "
        "social media features and to analyse our traffic.</p><p>Deny</p><p>Allow selection</p><p>Allow all</p>",
    ),
    ("gate_consent", "", "<p>我们使用Cookies和类似技术来确保网站正常运行</p><p>继续浏览即表示您同意</p><p>知道了</p>"),
    (
        "gate_login",
        "Portal",
        "<p>Sign in with your organizational account</p><input type=password><p>Keep me signed in</p>",
    ),
    (
        "gate_login",
        "",
        "<p>Welcome! Please identify yourself to proceed.</p><p>User ID</p><p>Passcode</p><input type=password>",
    ),
    (
        "gate_login",
        "Content locked",
        "<p>Want to keep reading? Create a free account or log in to unlock this story.</p>",
    ),
    ("gate_login", "", "<p>该内容需要登录才能查看</p><p>去登录</p>"),
    ("gate_login", "", "<p>VIP会员专享内容</p><p>开通会员后阅读全文</p><p>登录</p>"),
    ("gate_scripts", "", "<p>Your browser does not support JavaScript or it is turned off.</p><script>1</script>"),
    ("gate_scripts", "", "<p>Please turn JavaScript on and reload the page.</p><script>1</script>"),
    ("gate_scripts", "", "<p>页面加载中...</p><script>1</script>"),
    ("gate_moved", "", "<p>We've got a new home! This site is now at https://new.example.com/. Update your links.</p>"),
    ("gate_moved", "Wiki", "<p>The wiki was migrated. Click here to continue to the new location.</p>"),
    ("gate_moved", "", "<p>网站域名已更换，3 秒后自动跳转到新网址</p>"),
]

CONTENT: list[tuple[str, str]] = [
    (
        "We have moved",
        "<h1>We have moved</h1><p>Since 1 March our office is at 12 Harbour Street, on the third floor. The telephone "
        "number stays the same. Parking is behind the building; tram 4 stops at the door.</p><p>Deliveries are taken "
        "at the back between eight and four.</p>",
    ),
    (
        "HTTP status 301 explained",
        "<h1>HTTP status 301 explained</h1><p>With 301 a server says that a page has moved permanently. Browsers keep "
        "the answer and go to the new address at once. Search engines hand the old page's weight to the new one.</p>"
        "<p>Use 308 where the method of the request must stay, and 302 where the move is for a while only.</p>",
    ),
    (
        "域名迁移指南",
        "<h1>域名迁移指南</h1><p>迁移域名之前，先在新服务器上部署网站并核对全部链接。"
        "然后在旧域名上设置 301 重定向，保留至少一年。</p>"
        "<p>完成后在站长平台提交改版规则，观察抓取量和收录数的变化，通常需要两到四周才能稳定。</p>",
    ),
    (
        "What are cookies? A short guide",
        "<h1>What are cookies?</h1><p>A cookie is a small piece of data that a web server stores in the browser. Lou "
        "Montulli invented it in 1994 at Netscape, to let a shop remember the contents of a basket.</p>"
        "<p>Session cookies "
        "end with the browser; persistent ones carry a date. Since 2018 the GDPR asks sites in Europe for "
        "consent before "
        "they store cookies that are not necessary, which is why banners appear everywhere.</p><p>To delete them in "
        "Firefox, open the settings, choose Privacy, then Clear Data. Chrome has the same under Site data.</p>",
    ),
    (
        "How to fix 404 errors in WordPress",
        "<h1>How to fix 404 errors in WordPress</h1><p>A 404 means that the server was reached but has "
        "nothing under the "
        "path. In WordPress the cause is most often the permalink structure: open Settings, Permalinks and "
        "save without "
        "a change, which rewrites the .htaccess file.</p><p>If that does not help, deactivate the plugins one "
        "after the "
        "other, and look whether mod_rewrite is loaded.</p>",
    ),
    (
        "Reset your password",
        "<h1>Reset your password</h1><p>An administrator can reset the password of any member of the team. "
        "Open Team, "
        "choose the member, and press Send link. The link is valid for 24 hours and works once.</p><p>With single "
        "sign-on the password is kept by your identity provider; change it there. Recovery codes are ten "
        "characters long "
        "and can be printed from the security page.</p>",
    ),
    (
        "How CAPTCHA works",
        "<h1>How CAPTCHA works</h1><p>The word was coined in 2003 by Luis von Ahn and colleagues at Carnegie "
        "Mellon. Early "
        "tests showed distorted letters that optical recognition could not read; reCAPTCHA used the answers "
        "to digitise "
        "the archive of The New York Times.</p><p>Version three shows nothing at all: it scores each visit "
        "between zero "
        "and one from the way the pointer moves, and leaves it to the site what to do with a low score.</p>",
    ),
    (
        "noscript element",
        "<h1>The noscript element</h1><p>Its content is drawn only where scripting is off. In the head it may "
        "hold link, "
        "style and meta; in the body any flow content. A common use is a sentence that asks people to enable "
        "JavaScript, though a page that works without it serves them better.</p>",
    ),
    ("Opening hours", "<h1>Opening hours</h1><p>Monday to Friday 9 to 17, Saturday 10 to 14. Closed on Sunday.</p>"),
    (
        "Contact",
        "<h1>Contact</h1><p>Museum of Vik, Harbour Street 4, 870 Vik. Telephone 487 1395. The office answers "
        "on weekdays "
        "from nine to three.</p>",
    ),
    (
        "Release 2.4",
        "<h1>Release 2.4</h1><ul><li>Login with a passkey</li><li>Fixed: page not found after a rename</li>"
        "<li>Exports hold the author</li></ul>",
    ),
    (
        "Lost and found office",
        "<h1>Lost and found</h1><p>Items found on trams are kept for six weeks at the depot in North Street. "
        "Sorry, we "
        "cannot search by telephone. Bring a form of identification.</p>",
    ),
    (
        "验证码的历史",
        "<h1>验证码的历史</h1><p>验证码由卡内基梅隆大学的研究者在二〇〇三年命名，最初是扭曲的字母，后来用于识"
        "别旧报纸上的文字。"
        "第三版不再显示任何题目，而是根据鼠标移动的轨迹打分，由网站决定如何处理低分的访问。</p>",
    ),
    ("图书馆开放时间", "<h1>开放时间</h1><p>周一至周五八点到二十二点，周末九点到十七点，法定节假日闭馆。</p>"),
    (
        "怎样注册账号",
        "<h1>怎样注册账号</h1><p>打开应用后点击右上角的头像，填写手机号，收到短信后输入六位数字，再设置一个至"
        "少十位的密码即可。"
        "注册完成后建议在安全页面打印恢复码，手机丢失时可以用它找回账号。企业用户由管理员统一开通，不需要自行"
        "注册。</p>",
    ),
    (
        "网站 Cookie 政策说明",
        "<h1>什么是 Cookie</h1><p>Cookie "
        "是服务器存放在浏览器里的一小段数据，一九九四年由网景公司的工程师发明，用来记住购物车里的商品。"
        "会话型在关闭浏览器时失效，持久型带有日期。欧洲自二〇一八年起要求网站在存放非必要的数据之前征得访客许"
        "可。</p>",
    ),
    ("梵高的向日葵", "<p>一八八八年八月，梵高在阿尔勒画下了这组向日葵，用来装饰高更将要住的房间。</p>"),
]
