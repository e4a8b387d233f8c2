// Wide tables scroll in a box of the theme's; a keyboard has to reach it.
window.addEventListener("load", () =>
  document.querySelectorAll(".md-typeset__scrollwrap, pre > code").forEach((box) => box.setAttribute("tabindex", "0")),
);
