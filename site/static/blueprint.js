// The graph of claims.
(() => {
  // In the blueprint, the arrows of the statement that is pointed at stand out.
  for (const node of document.querySelectorAll(".blueprint a[data-id]")) {
    const own = document.querySelectorAll(`.blueprint path[data-from="${node.dataset.id}"], .blueprint path[data-to="${node.dataset.id}"]`);
    const light = (on) => own.forEach((path) => path.classList.toggle("lit", on));
    for (const event of ["mouseenter", "focus"]) node.addEventListener(event, () => light(true));
    for (const event of ["mouseleave", "blur"]) node.addEventListener(event, () => light(false));
  }
})();
