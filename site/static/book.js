// Formulas, what scrolls sideways, tables, previews of statements and terms, and a mark on the outcome of claims. No request leaves the book.
(() => {
  const article = document.querySelector(".bd-article") || document.body;

  // What follows a formula without a space begins no line: a comma, a bracket, the rest of “k-means”. The formula itself may break between its parts.
  const keepTogether = (place) => {
    const next = place.nextSibling;
    const closing = place.localName === "span" && next?.nodeType === Node.TEXT_NODE && next.data.match(/^([.,;:!?)\]”’]+|-\p{L}+)/u);
    if (!closing) return;
    next.splitText(closing[0].length);
    const both = document.createElement("span");
    both.className = "together";
    place.before(both);
    both.append(place, next);
    for (const part of place.querySelectorAll(".base + .base")) part.before(document.createElement("wbr"));
  };

  // Formulas: KaTeX sets what Sphinx has written as \(...\) or \[...\], after the number of an equation if it has one.
  const made = new Map(); // many formulas stand on a page more than once, and a copy is faster
  const typeset = (root) => {
    for (const place of root.querySelectorAll(".math:not(.katex-error, :has(.katex))")) {
      const source = place.lastChild;
      const text = source.textContent.trim().replace(/^\\[([]|\\[)\]]$/g, "");
      const displayMode = place.localName === "div", key = `${displayMode} ${text}`;
      try {
        if (!made.has(key)) {
          const formula = document.createElement("span");
          katex.render(text, formula, { displayMode });
          made.set(key, formula.firstChild);
        }
        source.replaceWith(made.get(key).cloneNode(true));
        keepTogether(place);
      } catch (error) {
        place.classList.add("katex-error"); // the reader sees the source
        console.error(error.message);
      }
    }
  };
  if (window.katex) typeset(document);
  performance.mark("formulas"); // for whoever measures

  // Copied text has the source of its formulas, not their letters twice.
  document.addEventListener("copy", (event) => {
    const selection = getSelection();
    if (selection.isCollapsed || !event.clipboardData) return;
    const range = selection.getRangeAt(0).cloneRange();
    const whole = (node) => (node.closest ? node : node.parentElement).closest(".katex");
    const [first, last] = [whole(range.startContainer), whole(range.endContainer)];
    if (first) range.setStartBefore(first);
    if (last) range.setEndAfter(last);
    const copied = range.cloneContents();
    if (!copied.querySelector(".katex")) return;
    for (const formula of copied.querySelectorAll(".katex")) {
      const mark = formula.closest(".katex-display") ? "$$" : "$";
      formula.replaceWith(mark + formula.querySelector("annotation").textContent + mark);
    }
    for (const block of copied.querySelectorAll("p, li, pre, tr, h1, h2, h3, div.math")) block.append("\n\n");
    event.clipboardData.setData("text/plain", copied.textContent.trim());
    event.preventDefault();
  });

  // What is wider than its place scrolls: it fades out where there is more, and the keyboard reaches it.
  const scrollers = { ".math": "Wide formula", "div:has(> table)": "Wide table", "div.cell_output, .cell_output > .output": "Wide output", pre: "Wide code" };
  const cue = (boxes) => {
    const hidden = boxes.map((box) => box.scrollWidth - box.clientWidth); // all is read before anything is written: one layout
    const left = boxes.map((box) => box.scrollLeft);
    boxes.forEach((box, i) => {
      const wide = hidden[i] > 1;
      if (wide && !box.classList.contains("scrolls")) {
        const name = Object.keys(scrollers).find((kind) => box.matches(kind));
        box.tabIndex = 0;
        box.setAttribute("role", "group");
        box.setAttribute("aria-label", `${scrollers[name]}, scrolls sideways`);
        box.addEventListener("scroll", () => cue([box]), { passive: true });
      } else if (!wide && box.classList.contains("scrolls")) {
        for (const attribute of ["tabindex", "role", "aria-label"]) box.removeAttribute(attribute);
      }
      box.classList.toggle("scrolls", wide);
      box.classList.toggle("more-left", wide && left[i] > 1);
      box.classList.toggle("more-right", wide && left[i] < hidden[i] - 1);
    });
  };
  const boxes = [...article.querySelectorAll(Object.keys(scrollers).join())].filter((box) => !box.matches("span.math"));
  const sizes = new ResizeObserver((changes) => cue(changes.map((change) => change.target)));
  for (const box of boxes) sizes.observe(box);

  // A formula within a line breaks between its relations; one that has no such place and is wider than the line scrolls.
  const inline = [...article.querySelectorAll("span.math")];
  const fit = (formulas = inline) => {
    const before = formulas.filter((formula) => formula.classList.contains("wide"));
    before.forEach((formula) => formula.classList.remove("wide"));
    const wide = formulas.filter((formula) => {
      const block = formula.closest("p, li, dd, dt, td, th, caption, figcaption, h1, h2, h3, h4, div");
      return formula.getBoundingClientRect().right > block.getBoundingClientRect().right + 1;
    });
    wide.forEach((formula) => formula.classList.add("wide"));
    if (before.length || wide.length) cue([...new Set([...before, ...wide])]);
  };
  let width;
  new ResizeObserver(([{ contentRect }]) => {
    if (contentRect.width !== width) fit();
    width = contentRect.width;
  }).observe(article);
  // A font that has come makes formulas and tables wider, and their boxes no larger.
  document.fonts.addEventListener("loadingdone", () => { fit(); cue(boxes); });
  document.fonts.ready.then(() => fit());
  // What is folded has no width in some browsers until it is opened.
  article.addEventListener("toggle", ({ target }) => fit(inline.filter((formula) => target.contains(formula))), true);

  // Tables: a column of numbers stands to the right, its head too. Columns are counted from the right: a name on the left may stand for many rows.
  const number = /^[−+±<>≤≥≈~-]?\s?\d[\d.,\s]*(e[−+-]?\d+)?\s?(%|×|[a-zµ]{1,3})?$/i;
  for (const table of article.querySelectorAll("table")) {
    const rows = [...table.rows].map((row) => [...row.cells].reverse()).filter((cells) => cells.every((cell) => cell.colSpan === 1));
    const widest = Math.max(0, ...rows.map((cells) => cells.length));
    for (let column = 0; column < widest; column++) {
      const cells = rows.map((row) => row[column]).filter(Boolean);
      const texts = cells.filter((cell) => !cell.closest("thead")).map((cell) => cell.textContent.trim());
      const said = texts.filter((text) => !/^(|[–—-]|nan|none)$/i.test(text));
      if (said.length && said.every((text) => number.test(text))) cells.forEach((cell) => cell.classList.add("number"));
    }
  }

  // Previews of statements and terms over references to them: they are in previews.js, which is loaded when the first is wanted.
  const root = document.documentElement.dataset.content_root || "";
  const load = (name) =>
    new Promise((resolve, reject) => document.head.append(Object.assign(document.createElement("script"), { src: `${root}_static/${name}`, onload: resolve, onerror: reject })));
  let box, shownFor, wanted, timer, ready;

  const show = async (link) => {
    wanted = link;
    ready ||= Promise.all([window.bookStatements || load("previews.js"), window.katex || load("katex.min.js")]);
    await ready;
    const id = decodeURIComponent(link.getAttribute("href").split("#")[1]);
    if (wanted !== link || !Object.hasOwn(window.bookStatements, id)) return;
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
    box.innerHTML = window.bookStatements[id];
    for (const inner of box.querySelectorAll("a")) {
      inner.tabIndex = -1;
      inner.setAttribute("href", root + inner.getAttribute("href"));
    }
    typeset(box);
    box.hidden = false;
    const place = link.getBoundingClientRect();
    const width = box.offsetWidth;
    box.style.left = `${Math.max(8, Math.min(place.left, document.documentElement.clientWidth - width - 8)) + window.scrollX}px`;
    box.style.top = `${place.bottom + 6 + window.scrollY}px`;
    link.setAttribute("aria-describedby", box.id);
    shownFor = link;
  };

  const hide = () => {
    wanted = null;
    if (!box) return;
    box.hidden = true;
    if (shownFor) shownFor.removeAttribute("aria-describedby");
  };

  const later = (action, ms) => { clearTimeout(timer); timer = setTimeout(action, ms); };

  for (const link of document.querySelectorAll(".bd-article a[href*='#'], .blueprint a[href*='#']")) {
    if (!/#(thm|lem|prp|cor|def|exm|rem|alg|gls)-/.test(link.getAttribute("href")) || link.classList.contains("statement-number")) continue;
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
