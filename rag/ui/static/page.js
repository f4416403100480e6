/* What only a browser can do, told by scripts.py in the data of the element that runs this. */
(() => {
  const told = document.currentScript.dataset;
  const find = (selector) => [...document.querySelectorAll(selector)].pop();
  const ACTS = ["wheel", "touchmove", "pointerdown", "keydown"];

  /* What completes an address without anything a person did is no step to go Back to. */
  function mergeSteps() {
    const push = history.pushState;
    window.acted = document.activeElement?.tagName === "BUTTON"; // clicked before this script came
    ACTS.forEach((act) => addEventListener(act, () => (window.acted = true), true));
    history.pushState = (state, title, url) => {
      const elsewhere = new URL(url, location).pathname !== location.pathname;
      (window.acted || elsewhere ? push : history.replaceState).call(history, state, title, url);
      window.acted = false;
    };
    window.stepsMerged = true;
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

  function keepInSight(place) {
    window.letGo?.();
    if (place === "end" && window.acted) return; // the person is busy with what is in sight already
    const path = location.pathname;
    const show = () => {
      const main = find('[data-testid="stMain"]');
      if (location.pathname !== path) window.letGo();
      else if (place === "end") main?.scrollTo(0, main.scrollHeight);
      else find(`.${place}`)?.scrollIntoView({ block: "start" });
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
  function openEntry() {
    const entry = find('[class*="st-key-node-"]:has(.place:target)');
    entry?.querySelector("details:not([open]) > summary")?.click();
  }

  if (!window.stepsMerged) {
    mergeSteps();
    addEventListener("hashchange", openEntry);
  }
  if (told.language) document.documentElement.lang = told.language;
  if (told.skip) skipLink(told.skip);
  if (told.upload) document.documentElement.style.setProperty("--upload", JSON.stringify(told.upload));
  if (told.show) keepInSight(told.show);
})();
