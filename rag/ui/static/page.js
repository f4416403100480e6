/* What only a browser can do, told by scripts.py in the data of the element that runs this. */
(() => {
  const told = document.currentScript.dataset;
  const find = (selector) => [...document.querySelectorAll(selector)].pop();
  const ACTS = ["wheel", "touchmove", "pointerdown", "keydown"];

  function skipLink(label) {
    const link = document.querySelector("a.skip") ?? document.createElement("a");
    link.className = "skip";
    link.href = "#";
    link.textContent = label;
    link.onclick = (event) => {
      event.preventDefault();
      const target = find('[class*="st-key-answer-"]') ?? find('[data-testid="stMainBlockContainer"]');
      target.tabIndex = -1;
      target.focus();
      target.scrollIntoView({ block: "start" });
    };
    document.body.prepend(link);
  }

  function keepInSight(place) {
    window.letGo?.();
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

  if (told.language) document.documentElement.lang = told.language;
  if (told.skip) skipLink(told.skip);
  if (told.show) keepInSight(told.show);
})();
