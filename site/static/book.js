// Previews of statements over references to them, and a mark on the outcome of claims. No request is made: the statements are in previews.js.
(() => {
  const statements = window.bookStatements || {};
  let box, shownFor, timer;

  const target = (link) => {
    const id = decodeURIComponent((link.getAttribute("href") || "").split("#")[1] || "");
    return Object.hasOwn(statements, id) && !link.classList.contains("statement-number") ? id : null;
  };

  const show = (link) => {
    const id = target(link);
    if (!id) return;
    hide();
    if (!box) {
      box = document.createElement("div");
      box.className = "preview bd-article";
      box.id = "statement-preview";
      box.setAttribute("role", "tooltip");
      box.addEventListener("mouseenter", () => clearTimeout(timer));
      box.addEventListener("mouseleave", hide);
      document.body.append(box);
    }
    box.innerHTML = statements[id];
    for (const inner of box.querySelectorAll("a")) {
      inner.tabIndex = -1;
      inner.setAttribute("href", (document.documentElement.dataset.content_root || "") + inner.getAttribute("href"));
    }
    box.hidden = false;
    const place = link.getBoundingClientRect();
    const width = box.offsetWidth;
    box.style.left = `${Math.max(8, Math.min(place.left, document.documentElement.clientWidth - width - 8)) + window.scrollX}px`;
    box.style.top = `${place.bottom + 6 + window.scrollY}px`;
    link.setAttribute("aria-describedby", box.id);
    shownFor = link;
    if (window.MathJax && MathJax.typesetPromise) MathJax.typesetPromise([box]);
  };

  const hide = () => {
    if (!box) return;
    box.hidden = true;
    if (shownFor) shownFor.removeAttribute("aria-describedby");
  };

  const later = (action, ms) => { clearTimeout(timer); timer = setTimeout(action, ms); };

  for (const link of document.querySelectorAll(".bd-article a[href*='#'], .blueprint a[href*='#']")) {
    if (!target(link)) continue;
    link.addEventListener("mouseenter", () => later(() => show(link), 150));
    link.addEventListener("mouseleave", () => later(hide, 250));
    link.addEventListener("focus", () => show(link));
    link.addEventListener("blur", hide);
  }
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });

  // Outcomes of claims: a line with a tick holds, one with a cross is about a refuted sentence.
  const outcome = /^([✓✗]) [a-z]+-/;
  for (const pre of document.querySelectorAll("div.cell_output pre")) {
    const lines = pre.textContent.split(/(?<=\n)/);
    if (!lines.some((line) => outcome.test(line))) continue;
    pre.replaceChildren(...lines.map((text) => {
      const line = document.createElement("span");
      line.textContent = text;
      if (outcome.test(text)) line.className = text.startsWith("✓") ? "checked" : "refuted";
      return line;
    }));
  }
})();
