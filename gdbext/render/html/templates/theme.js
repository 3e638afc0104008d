"use strict";
document.documentElement.classList.add("scripted");
const $ = (id) => document.getElementById(id);

// Colours: as the system has them, dark, light.
{
  const themes = ["", "dark", "light"];
  const said = { "": "as the system has them", dark: "dark", light: "light" };
  let theme = "";
  try { theme = localStorage.getItem("gdbext-theme") || ""; } catch (refused) { /* a file of its own origin */ }
  const show = () => {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    $("theme").setAttribute("aria-label", "Colours: " + said[theme]);
    $("theme").title = "Colours: " + said[theme];
  };
  if (!(theme in said)) theme = "";
  show();
  $("theme").addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try { localStorage.setItem("gdbext-theme", theme); } catch (refused) { /* it is kept until the page is closed */ }
    show();
  });
}
