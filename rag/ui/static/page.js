/* What only a browser can do. It stands in the page that is opened; browser.py calls `told` with what it is about. */
(() => {
  const find = (selector) => [...document.querySelectorAll(selector)].pop();
  const ACTS = ["wheel", "touchmove", "pointerdown", "keydown"];

  /* What completes an address without anything a person did is no step to go Back to. */
  function mergeSteps() {
    const push = history.pushState;
    window.acted = false;
    ACTS.forEach((act) => addEventListener(act, () => (window.acted = true), true));
    history.pushState = (state, title, url) => {
      const elsewhere = new URL(url, location).pathname !== location.pathname;
      (window.acted || elsewhere ? push : history.replaceState).call(history, state, title, url);
      window.acted = false;
    };
  }

  /* Streamlit's own link past the sidebar, in the language of the page, and to the newest answer where there is one. */
  function skipLink(label) {
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
    window.letGo?.();
    const linked = window.firstHash.replace("#", "st-key-");
    if (place === "end" && linked.startsWith("st-key-question-") && find(`.${CSS.escape(linked)}`)) place = linked;
    window.firstHash = "";
    if (place === "end" && window.acted) return; // the person is busy with what is in sight already
    const path = location.pathname;
    const show = () => {
      const main = find('[data-testid="stMain"]');
      if (location.pathname !== path) window.letGo();
      else if (place === "end") main?.scrollTo(0, main.scrollHeight);
      else find(`.${CSS.escape(place)}`)?.scrollIntoView({ block: "start" });
    };
    const growth = new MutationObserver(show);
    growth.observe(document.body, { childList: true, subtree: true, characterData: true });
    show();
    window.letGo = () => {
      growth.disconnect();
      ACTS.forEach((act) => removeEventListener(act, window.letGo, true));
    };
    ACTS.forEach((act) => addEventListener(act, window.letGo, true));
  }

  /* A box of a tree leads to its entry in the list below, and opens it. */
  function openEntry(event) {
    const box = event.target.closest?.("area");
    if (box) find(`[class*="st-key-node-"]:has(#${CSS.escape(box.hash.slice(1))}) details:not([open]) > summary`)?.click();
  }

  /* A mark or a chip opens its source: page and answer stay as they are, only the panel is drawn. */
  const SOURCE = 'a[href^="#source-"]';
  function openSource(event) {
    const link = event.target.closest?.(SOURCE);
    if (!link || !/-\d+$/.test(link.hash) || !wantSource(link.hash.slice(1))) return;
    event.preventDefault();
    window.sourceOpener = link;
  }

  /* What is put into the panel's box, the app opens; nothing closes it. */
  const wantSource = (wanted) => putInto("requested-source", wanted);

  function putInto(key, wanted) {
    const box = find(`.st-key-${key} input`);
    if (!box) return false;
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(box, wanted);
    box.dispatchEvent(new Event("input", { bubbles: true }));
    box.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
    return true;
  }

  /* A page's dot on the map opens the page in this tab; with a key held, as links do. */
  function openDot(event) {
    const dot = event.target.closest?.("a.dot");
    if (!dot || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (putInto("requested-page", new URL(dot.href).searchParams.get("page"))) event.preventDefault();
  }

  function moveOn(event) {
    const dot = event.target.closest?.("a.dot"), step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!dot || !step) return;
    event.preventDefault();
    const dots = [...dot.parentNode.querySelectorAll("a.dot")];
    dots.at((dots.indexOf(dot) + step) % dots.length).focus();
  }

  /* Once the panel is there: the focus goes into it and the sentence into sight; once it is gone, back to the mark. */
  function showSource(source, name, tries = 300) {
    if (source !== window.currentSource) return; // another one was told of meanwhile
    document.querySelectorAll(`${SOURCE}[aria-current]`).forEach((link) => link.removeAttribute("aria-current"));
    const panel = find(".st-key-source-panel"), again = () => tries && requestAnimationFrame(() => showSource(source, name, tries - 1));
    if (!source) {
      if (panel) return again(); // it is told before the panel is gone, now and then
      if (document.activeElement === document.body) window.sourceOpener?.focus();
      window.sourceOpener = null;
      return;
    }
    if (!panel?.querySelector(`#open-${source}`)) return again();
    document.querySelectorAll(`${SOURCE}[href="#${source}"]`).forEach((link) => link.setAttribute("aria-current", "true"));
    Object.entries({ role: "dialog", "aria-label": name, tabindex: "-1" }).forEach((pair) => panel.setAttribute(...pair));
    if (!panel.contains(document.activeElement)) panel.focus({ preventScroll: true });
    const sheet = panel.offsetWidth === innerWidth; // it covers what it stands beside elsewhere
    if (sheet) window.sourceOpener?.scrollIntoView({ block: "start" });
    const text = panel.querySelector(".st-key-source-text"), quote = text.querySelector(".stMarkdownColoredBackground");
    [text, ...text.querySelectorAll("pre")].forEach((scrolled) => (scrolled.tabIndex = 0));
    if (quote) text.scrollTop += quote.getBoundingClientRect().top - text.getBoundingClientRect().top - text.clientHeight / 4;
  }

  const BOX = '[data-testid="stChatInputTextArea"]', OPEN = '[role="menu"], [role="dialog"], [role="listbox"], [data-testid="stPopoverBody"]';
  function onKey(event) {
    moveOn(event);
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
    if (find(".st-key-source-panel")) wantSource("");
    else if (!find(OPEN)) find('[class*="st-key-stop-"] button')?.click();
  }

  const SEARCH = ".st-key-search-text input";
  function goSearch() {
    if (!find(SEARCH)) find('[data-testid="stSidebarNavLink"][href*="/search"]')?.click();
    focusOn(SEARCH);
  }

  /* Now, or as soon as it is drawn. */
  function focusOn(selector, tries = 300) {
    const box = find(selector);
    if (box) return box.focus();
    if (tries) requestAnimationFrame(() => focusOn(selector, tries - 1));
  }

  /* The list of keys: a title, lines of a key and what it does, and the word on the button. */
  function showKeys() {
    const [title, ...lines] = (window.words?.keys ?? "").split("\n"), close = lines.pop();
    window.keysWanted = !close; // pressed before the words are here
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

  /* Two of Streamlit's own dialogs, which speak English only: a line in the page's language takes their place. */
  const NATIVE = { "Connection error": "offline", "Page not found": "page_unknown" };
  function replaceDialogs() {
    for (const dialog of document.querySelectorAll('[data-testid="stDialog"]:not([data-replaced])')) {
      const name = NATIVE[Object.keys(NATIVE).find((title) => dialog.textContent.startsWith(title))];
      if (!name || !window.words?.[name]) continue;
      dialog.dataset.replaced = name;
      const notice = make("div", { id: "notice", textContent: window.words[name] });
      notice.setAttribute("role", "status");
      find("#notice")?.remove();
      document.body.append(notice);
      if (name === "offline") continue; // it goes with its dialog, once the server is there again
      dialog.querySelector("button")?.click();
      setTimeout(() => notice.remove(), 8000);
    }
    const notice = find("#notice");
    if (notice && notice.textContent === window.words?.offline && !find('[data-replaced="offline"]')) notice.remove();
  }

  /* The link that is dragged to the bookmarks bar opens the app with the address of the page it is clicked on. */
  function makeBookmark(event) {
    const link = event.target.closest?.('a[href="#bookmarklet"]');
    if (!link) return;
    const app = location.origin + location.pathname.replace(/[^/]*$/, "");
    link.href = `javascript:void(open(${JSON.stringify(`${app}?add=`)}+encodeURIComponent(location.href)))`;
    link.onclick = (click) => click.preventDefault();
  }

  /* Who points at a mark, or comes to it by keyboard, reads the quote. */
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
    tell(link, link.dataset.tip);
  }

  function tell(link, text) {
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

  /* The text of an answer, its marks in brackets; or the address that opens its conversation at its question. */
  function takeAlong(event) {
    const [, act, turn] = event.target.closest?.("a")?.hash.match(/^#(copy|share)-(.+)$/) ?? [];
    if (!act) return;
    event.preventDefault();
    const link = event.target.closest("a");
    const text = act === "copy" ? asText(find(`.st-key-answer-${turn}`)) : `${location.href.split("#")[0]}#question-${turn}`;
    keepText(text).then(() => tell(link, window.copiedWord));
  }

  function asText(answer) {
    if (!answer) return "";
    const copy = answer.cloneNode(true);
    copy.querySelectorAll(SOURCE).forEach((mark) => mark.replaceWith(/^\d+$/.test(mark.textContent) ? `[${mark.textContent}]` : ""));
    Object.assign(copy.style, { position: "fixed", left: "-999rem" }); // innerText needs what is laid out
    document.body.append(copy);
    const text = copy.innerText.trim();
    copy.remove();
    return text;
  }

  /* Browsers have a clipboard over TLS and on the machine itself only; elsewhere the older way. */
  async function keepText(text) {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const field = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }

  function watchSources() {
    addEventListener("click", openSource, true);
    addEventListener("click", openDot, true);
    addEventListener("click", takeAlong);
    addEventListener("click", openEntry);
    addEventListener("keydown", onKey);
    ["pointerover", "pointerdown", "focusin"].forEach((act) => addEventListener(act, makeBookmark, true));
    new MutationObserver(() => { replaceDialogs(); nameUploaders(); }).observe(document.body, { childList: true, subtree: true });
    ["mouseover", "focusin"].forEach((act) => addEventListener(act, showTip));
    ["scroll", "click"].forEach((act) => addEventListener(act, hideTip, true));
  }

  /* The button of an uploader is called in the page's language, and its frame groups instead of hiding its name. */
  function nameUploaders() {
    if (!window.words?.upload) return;
    document.querySelectorAll('[data-testid="stFileUploaderDropzone"]').forEach((zone) => {
      zone.setAttribute("role", "group");
      zone.querySelector("button")?.setAttribute("aria-label", window.words.upload);
    });
  }

  /* What is asked stands on the page at once, until the app has drawn it, or said why not. */
  const ASKING = ".st-key-examples button, .st-key-suggestions button";
  const questions = () => [...document.querySelectorAll('[class*="st-key-question-"]')].map((one) => one.className);
  function onAsk(event) {
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

  mergeSteps();
  watchSources();
  ["keydown", "click"].forEach((act) => addEventListener(act, onAsk, true));
  window.firstHash = location.hash;

  window.receive = (message) => {
    if (message.copied) window.copiedWord = message.copied;
    if (message.keys) window.words = { ...message };
    if (message.keys) replaceDialogs();
    if (message.keys) nameUploaders();
    if (message.keys && window.keysWanted) showKeys();
    if (message.language) document.documentElement.lang = message.language;
    if (message.skip) skipLink(message.skip);
    if (message.upload) document.documentElement.style.setProperty("--upload", JSON.stringify(message.upload));
    if (message.scroll_to) keepInView(message.scroll_to);
    if ("source" in message) showSource((window.currentSource = message.source), message.name);
  };
})();
