
"use strict";
// A link to a check opens it; what is closed is opened for printing, but for kill maps.
function reveal() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target?.matches("details")) target.open = true;
  target?.scrollIntoView();
}
addEventListener("load", reveal);
addEventListener("hashchange", reveal);

let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not(.killmap):not([open])")];
  for (const each of opened) each.open = true;
});
addEventListener("afterprint", () => {
  for (const each of opened) each.open = false;
});
