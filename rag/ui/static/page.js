/* Everything that needs a browser. The page contains this script; browser.py calls `receive` with the data. */
(() => {
  const find = (selector) => [...document.querySelectorAll(selector)].pop();
  const USER_EVENTS = ["wheel", "touchmove", "pointerdown", "keydown"];

  /* Within a page, a URL change that no user action caused adds no history entry. */
  function mergeHistory() {
    const push = history.pushState;
    window.userActed = false;
    USER_EVENTS.forEach((act) => addEventListener(act, () => (window.userActed = true), true));
    history.pushState = (state, title, url) => {
      const elsewhere = new URL(url, location).pathname !== location.pathname;
      (window.userActed || elsewhere ? push : history.replaceState).call(history, state, title, url);
      window.userActed = false;
      if (elsewhere) closeSidebar();
    };
  }

  /* Translate Streamlit's skip link, and point it at the newest answer, if any. */
  function updateSkipLink(label) {
    const link = find('[data-testid="stSkipToContent"]');
    if (!link) return;
    link.textContent = label;
    link.onclick = (event) => {
      const answer = find('[class*="st-key-answer-"]');
      if (!answer) return;
      event.preventDefault();
      event.stopPropagation();
      answer.tabIndex = -1;
      answer.focus();
    };
  }

  function keepInView(place) {
    window.stopFollowing?.();
    const linked = window.firstHash.replace("#", "st-key-");
    if (place === "end" && linked.startsWith("st-key-question-") && find(`.${CSS.escape(linked)}`)) place = linked;
    window.firstHash = "";
    if (place === "end" && window.userActed) return; // the user is already busy with the visible part
    const path = location.pathname;
    const show = () => {
      const main = find('[data-testid="stMain"]');
      if (location.pathname !== path) window.stopFollowing();
      else if (place === "end") main?.scrollTo(0, main.scrollHeight);
      else find(`.${CSS.escape(place)}`)?.scrollIntoView({ block: "start" });
    };
    const growth = new MutationObserver(show);
    growth.observe(document.body, { childList: true, subtree: true, characterData: true });
    show();
    window.stopFollowing = () => {
      growth.disconnect();
      USER_EVENTS.forEach((act) => removeEventListener(act, window.stopFollowing, true));
    };
    USER_EVENTS.forEach((act) => addEventListener(act, window.stopFollowing, true));
  }

  /* A click on a box of a tree opens its entry in the list below. */
  function openEntry(event) {
    const box = event.target.closest?.("area");
    if (box) find(`[class*="st-key-node-"]:has(#${CSS.escape(box.hash.slice(1))}) details:not([open]) > summary`)?.click();
  }

  /* A citation mark or chip opens its source; only the panel is redrawn. */
  const SOURCE = 'a[href^="#source-"]';
  function openSource(event) {
    const link = event.target.closest?.(SOURCE);
    if (!link || !/-\d+$/.test(link.hash) || !requestSource(link.hash.slice(1))) return;
    event.preventDefault();
    window.sourceOpener = link;
  }

  /* The app opens the source whose id is in the panel's text field; an empty field closes the panel. */
  const requestSource = (value) => setField("requested-source", value);

  function setField(key, value) {
    const box = find(`.st-key-${key} input`);
    if (!box) return false;
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(box, value);
    box.dispatchEvent(new Event("input", { bubbles: true }));
    box.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
    return true;
  }

  /* On a narrow screen, the sidebar covers the conversation or the page that was chosen in it. */
  const TALKS = ".st-key-talk-new button, .st-key-talks [data-testid='stButton'] button";
  function closeSidebar() {
    const open = find('[data-testid="stSidebar"][data-collapsed="false"]');
    if (open && matchMedia("(max-width: 768px)").matches) find('[data-testid="stSidebarCollapseButton"] button')?.click();
  }

  /* A dot on the map opens its page in this tab; with a modifier key it acts as a normal link. */
  function openDot(event) {
    const dot = event.target.closest?.("a.dot");
    if (!dot || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (setField("requested-page", new URL(dot.href).searchParams.get("page"))) event.preventDefault();
  }

  function moveFocus(event) {
    const dot = event.target.closest?.("a.dot"), step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!dot || !step) return;
    event.preventDefault();
    const dots = [...dot.parentNode.querySelectorAll("a.dot")];
    dots.at((dots.indexOf(dot) + step) % dots.length).focus();
  }

  /* Streamlit ignores a click on the link of the current page: from a page's details, Library leads to the list. */
  function leaveDetails(event) {
    const back = event.target.closest?.('[data-testid="stSidebarNavLink"][aria-current]') && find(".st-key-page-back button");
    if (!back || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    back.click();
    closeSidebar();
  }

  /* Focus the panel and scroll to the sentence once the panel is drawn; once it is closed, return focus to the mark. */
  function showSource(source, name, tries = 300) {
    if (source !== window.currentSource) return; // another source has been opened meanwhile
    document.querySelectorAll(`${SOURCE}[aria-current]`).forEach((link) => link.removeAttribute("aria-current"));
    const panel = find(".st-key-source-panel"), again = () => tries && requestAnimationFrame(() => showSource(source, name, tries - 1));
    if (!source) {
      if (panel) return again(); // the message can arrive before the panel is removed
      if (document.activeElement === document.body) window.sourceOpener?.focus();
      window.sourceOpener = null;
      return;
    }
    if (!panel?.querySelector(`#open-${source}`)) return again();
    document.querySelectorAll(`${SOURCE}[href="#${source}"]`).forEach((link) => link.setAttribute("aria-current", "true"));
    Object.entries({ role: "dialog", "aria-label": name, tabindex: "-1" }).forEach((pair) => panel.setAttribute(...pair));
    if (!panel.contains(document.activeElement)) panel.focus({ preventScroll: true });
    const sheet = panel.offsetWidth === innerWidth; // on a narrow screen it covers the answer
    if (sheet) window.sourceOpener?.scrollIntoView({ block: "start" });
    const text = panel.querySelector(".st-key-source-text"), quote = text.querySelector(".stMarkdownColoredBackground");
    [text, ...text.querySelectorAll("pre")].forEach((scrolled) => (scrolled.tabIndex = 0));
    if (quote) text.scrollTop += quote.getBoundingClientRect().top - text.getBoundingClientRect().top - text.clientHeight / 4;
  }

  const BOX = '[data-testid="stChatInputTextArea"]', OPEN = '[role="menu"], [role="dialog"], [role="listbox"], [data-testid="stPopoverBody"]';
  function onKey(event) {
    moveFocus(event);
    if (event.key === "Escape") return onEscape();
    const search = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey);
    const types = event.target.closest?.("input, textarea, select, [contenteditable]");
    const does = search ? goSearch : types || event.ctrlKey || event.metaKey || event.altKey ? null : { "/": () => focusOn(BOX), "?": showKeys }[event.key];
    if (!does) return;
    event.preventDefault();
    does();
  }

  function onEscape() {
    hideTip();
    if (find(".st-key-source-panel")) requestSource("");
    else if (!find(OPEN)) find('[class*="st-key-stop-"] button')?.click();
  }

  const SEARCH = ".st-key-search-text input";
  function goSearch() {
    if (!find(SEARCH)) find('[data-testid="stSidebarNavLink"][href*="/search"]')?.click();
    focusOn(SEARCH);
  }

  /* Focus an element now, or as soon as it is drawn. */
  function focusOn(selector, tries = 300) {
    const box = find(selector);
    if (box) return box.focus();
    if (tries) requestAnimationFrame(() => focusOn(selector, tries - 1));
  }

  /* Show the keyboard shortcuts; the label has a title, a line per key and action, and the text of the button. */
  function showKeys() {
    const [title, ...lines] = (window.labels?.keys ?? "").split("\n"), close = lines.pop();
    window.keysRequested = !close; // pressed before the labels arrived
    if (!close || find("#keys")) return;
    const dialog = make("dialog", { id: "keys" }), list = make("dl"), button = make("button", { textContent: close });
    dialog.setAttribute("aria-label", title);
    lines.map((line) => line.split("\t")).forEach(([key, does]) => list.append(make("dt", { textContent: key }), make("dd", { textContent: does })));
    dialog.append(make("strong", { textContent: title }), list, button);
    button.onclick = () => dialog.close();
    dialog.onclose = () => dialog.remove();
    document.body.append(dialog);
    dialog.showModal();
  }

  const make = (name, values) => Object.assign(document.createElement(name), values);

  /* Replace two dialogs of Streamlit, which are in English only, with a line in the UI language. */
  const NATIVE = { "Connection error": "offline", "Page not found": "page_unknown" };
  function replaceDialogs() {
    for (const dialog of document.querySelectorAll('[data-testid="stDialog"]:not([data-replaced])')) {
      const name = NATIVE[Object.keys(NATIVE).find((title) => dialog.textContent.startsWith(title))];
      if (!name || !window.labels?.[name]) continue;
      dialog.dataset.replaced = name;
      const notice = make("div", { id: "notice", textContent: window.labels[name] });
      notice.setAttribute("role", "status");
      find("#notice")?.remove();
      document.body.append(notice);
      if (name === "offline") continue; // removed with its dialog, once the server is back
      dialog.querySelector("button")?.click();
      setTimeout(() => notice.remove(), 8000);
    }
    const notice = find("#notice");
    if (notice && notice.textContent === window.labels?.offline && !find('[data-replaced="offline"]')) notice.remove();
  }

  /* Turn the link into a bookmarklet that opens the app with the URL of the current page. */
  function makeBookmark(event) {
    const link = event.target.closest?.('a[href="#bookmarklet"]');
    if (!link) return;
    const app = location.origin + location.pathname.replace(/[^/]*$/, "");
    link.href = `javascript:void(open(${JSON.stringify(`${app}?add=`)}+encodeURIComponent(location.href)))`;
    link.onclick = (click) => click.preventDefault();
  }

  /* Show the quote when a mark is hovered or focused. */
  function showTip(event) {
    const link = event.target.closest?.(`${SOURCE}, a.dot`);
    hideTip();
    if (!link) return;
    if (link.title) {
      link.dataset.tip = link.title;
      link.setAttribute("aria-description", link.title);
      link.removeAttribute("title");
    }
    if (!link.dataset.tip) return;
    drawTip(link, link.dataset.tip);
  }

  function drawTip(link, text) {
    hideTip();
    const tip = document.createElement("div"), at = link.getBoundingClientRect();
    Object.assign(tip, { id: "source-tip", textContent: text });
    tip.setAttribute("aria-hidden", "true");
    document.body.append(tip);
    const top = at.top - tip.offsetHeight - 8;
    tip.style.left = `${Math.max(8, Math.min(at.left, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${top > 8 ? top : at.bottom + 8}px`;
  }

  function hideTip() {
    document.getElementById("source-tip")?.remove();
  }

  /* Copy an answer's text with its marks in brackets and its sources, or the URL of its question. */
  function copyOrShare(event) {
    const [, act, turn] = event.target.closest?.("a")?.hash.match(/^#(copy|share)-(.+)$/) ?? [];
    if (!act) return;
    event.preventDefault();
    const link = event.target.closest("a");
    const text = act === "copy" ? answerText(turn) : `${location.href.split("#")[0]}#question-${turn}`;
    copyText(text).then(() => drawTip(link, window.copiedLabel));
  }

  function answerText(turn) {
    const answer = find(`.st-key-answer-${turn}`), sources = find(`#sources-${turn}`)?.textContent;
    if (!answer) return "";
    const copy = answer.cloneNode(true);
    copy.querySelectorAll(SOURCE).forEach((mark) => mark.replaceWith(/^\d+$/.test(mark.textContent) ? `[${mark.textContent}]` : ""));
    Object.assign(copy.style, { position: "fixed", left: "-999rem" }); // innerText needs a laid-out element
    document.body.append(copy);
    const text = copy.innerText.trim();
    copy.remove();
    return sources ? `${text}\n\n${sources}` : text;
  }

  /* Browsers offer the clipboard API only over TLS and on localhost; elsewhere, use execCommand. */
  async function copyText(text) {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const field = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }

  /* Copied text is without the word joiners that keep page text from becoming links: a link with one cannot be opened. */
  function copyWithoutJoiners(event) {
    const text = getSelection().toString();
    if (!text.includes("\u2060")) return;
    event.clipboardData.setData("text/plain", text.replaceAll("\u2060", ""));
    event.preventDefault();
  }

  /* Remember the language if it was switched on this page; a link's `?lang=` applies to its own tab only. */
  function setLanguage(tag) {
    const switched = window.language && window.language !== tag;
    window.language = document.documentElement.lang = tag;
    const secure = location.protocol === "https:" ? "; Secure" : "";
    if (switched) document.cookie = `pagelight_language=${tag}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`;
  }

  function addListeners() {
    addEventListener("click", openSource, true);
    addEventListener("click", openDot, true);
    addEventListener("click", leaveDetails, true);
    addEventListener("click", copyOrShare);
    addEventListener("copy", copyWithoutJoiners);
    addEventListener("click", openEntry);
    addEventListener("click", (event) => event.target.closest?.(TALKS) && closeSidebar());
    addEventListener("keydown", onKey);
    ["pointerover", "pointerdown", "focusin"].forEach((act) => addEventListener(act, makeBookmark, true));
    new MutationObserver(() => { replaceDialogs(); nameUploaders(); }).observe(document.body, { childList: true, subtree: true });
    ["mouseover", "focusin"].forEach((act) => addEventListener(act, showTip));
    ["scroll", "click"].forEach((act) => addEventListener(act, hideTip, true));
  }

  /* Label an uploader's button in the UI language, and give its frame a role that keeps the label visible to screen readers. */
  function nameUploaders() {
    if (!window.labels?.upload) return;
    document.querySelectorAll('[data-testid="stFileUploaderDropzone"]').forEach((zone) => {
      zone.setAttribute("role", "group");
      zone.querySelector("button")?.setAttribute("aria-label", window.labels.upload);
    });
  }

  /* Show a question at once, until the app has drawn it or shown an error. */
  const ASKING = ".st-key-examples button, .st-key-suggestions button";
  const questions = () => [...document.querySelectorAll('[class*="st-key-question-"]')].map((one) => one.className);
  function onQuestion(event) {
    const typed = find('[data-testid="stChatInputTextArea"]');
    const entered = event.key === "Enter" && event.target === typed && !event.shiftKey && !event.isComposing;
    const sent = entered || (event.type === "click" && event.target.closest('[data-testid="stChatInputSubmitButton"]'));
    const text = sent ? typed.value.trim() : event.type === "click" && event.target.closest(ASKING)?.querySelector("p")?.textContent;
    if (text && !find(".asked-now")) echo(text);
  }

  function echo(text) {
    const asked = Object.assign(document.createElement("div"), { className: "st-key-question-sent asked-now", textContent: text });
    const known = new Set([...questions(), asked.className]), path = location.pathname;
    const look = new MutationObserver(() => {
      const drawn = questions().some((one) => !known.has(one));
      if (!drawn && location.pathname === path && !find('[data-testid="stToast"]')) return;
      look.disconnect();
      asked.remove();
      if (document.activeElement === document.body && matchMedia("(pointer: fine)").matches) find(BOX)?.focus();
    });
    document.querySelector('[data-testid="stMainBlockContainer"] [data-testid="stVerticalBlock"]')?.append(asked);
    asked.scrollIntoView({ block: "nearest" });
    look.observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ["class"] });
  }

  mergeHistory();
  addListeners();
  ["keydown", "click"].forEach((act) => addEventListener(act, onQuestion, true));
  window.firstHash = location.hash;

  window.receive = (message) => {
    if (message.copied) window.copiedLabel = message.copied;
    if (message.keys) window.labels = { ...message };
    if (message.keys) replaceDialogs();
    if (message.keys) nameUploaders();
    if (message.keys && window.keysRequested) showKeys();
    if (message.language) setLanguage(message.language);
    if (message.skip) updateSkipLink(message.skip);
    if (message.upload) document.documentElement.style.setProperty("--upload", JSON.stringify(message.upload));
    if (message.scroll_to) keepInView(message.scroll_to);
    if ("source" in message) showSource((window.currentSource = message.source), message.name);
  };
})();
