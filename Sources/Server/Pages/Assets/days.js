// The script of the strips of days: says what a cell means, by pointer, touch and keyboard.
"use strict";
(() => {
  let touched, selected;
  const cell = event => event.target.closest?.(".months a");
  const cells = one => [...one.closest(".months").querySelectorAll("a")];
  const output = one => one.closest(".months").previousElementSibling;

  function show(one) {
    const line = output(one);
    line.dataset.usual ??= line.textContent;
    line.textContent = one.querySelector("title").textContent;
  }

  function hide(one) {
    const line = output(one), held = document.activeElement.closest?.(".months a");
    if (held && output(held) === line) return show(held);
    line.textContent = line.dataset.usual ?? line.textContent;
  }

  addEventListener("pointerover", event => { const one = cell(event); if (one) show(one); });
  addEventListener("pointerout", event => { const one = cell(event); if (one) hide(one); });
  addEventListener("focusout", event => { const one = cell(event); if (one) hide(one); });
  addEventListener("focusin", event => {
    const one = cell(event);
    if (!one) return;
    // The Tab key comes back to this cell.
    for (const other of cells(one)) other.setAttribute("tabindex", other === one ? "0" : "-1");
    show(one);
  });
  addEventListener("keydown", event => {
    const one = cell(event), all = one && cells(one), at = one && all.indexOf(one);
    const next = one && { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: all.length - 1 }[event.key];
    if (!all?.[next]) return;
    event.preventDefault();
    all[next].focus();
  });
  // The first touch says what a day was, the second opens it.
  addEventListener("pointerdown", event => { touched = event.pointerType === "touch"; }, true);
  addEventListener("click", event => {
    const one = cell(event);
    if (!one || !touched || selected === one) return;
    event.preventDefault();
    selected = one;
    show(one);
  });
})();
