// Folds: one button for all exported cells of a page, and an address inside of a fold opens it.
(() => {
  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    let fold = target && target.closest("details:not([open])");
    if (!fold) return;
    for (; fold; fold = target.closest("details:not([open])")) fold.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();

  const folds = [...document.querySelectorAll(".tag_exported details.code-fold")];
  const title = document.querySelector(".bd-article h1");
  if (!folds.length || !title) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "all-exported";
  const say = () => {
    const open = folds.every((fold) => fold.open);
    button.textContent = `${open ? "Fold" : "Open"} all exported code (${folds.length} ${folds.length === 1 ? "cell" : "cells"})`;
    button.setAttribute("aria-expanded", open);
  };
  button.addEventListener("click", () => {
    const open = !folds.every((fold) => fold.open);
    for (const fold of folds) fold.open = open;
    say();
  });
  for (const fold of folds) fold.addEventListener("toggle", say);
  say();
  const lead = title.nextElementSibling;
  (lead && lead.matches("blockquote") ? lead : title).after(button);
})();
