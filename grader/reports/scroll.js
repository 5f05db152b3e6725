
// What is wider or longer than its box says so: in words above it, and with a shade at the side where it goes on.
for (const sides of document.querySelectorAll(".sides")) {
  const words = sides.querySelector(".more"), box = sides.querySelector(".scroll, .timeline"), heads = [...box.querySelectorAll("thead tr:last-child th")];
  const rows = [...box.querySelectorAll("tbody tr")], stuck = box.querySelector("thead th"), noun = sides.dataset.of ?? "column";
  const counted = (number, one) => `${number} more ${one}${number === 1 ? "" : "s"}`;

  function look() {
    const left = box.scrollLeft > 1, right = box.scrollLeft + box.clientWidth < box.scrollWidth - 1;
    const below = box.scrollTop + box.clientHeight < box.scrollHeight - 1, edge = box.getBoundingClientRect();
    const columns = heads.filter(head => head.getBoundingClientRect().right > edge.right + 1).length;
    const under = rows.filter(row => row.getBoundingClientRect().bottom > edge.bottom + 1).length;
    sides.classList.toggle("left", left);
    sides.classList.toggle("right", right);
    sides.classList.toggle("below", below);
    sides.style.setProperty("--stuck", `${stuck?.offsetWidth ?? 0}px`);
    sides.style.setProperty("--box", `${box.clientHeight}px`);
    sides.style.setProperty("--bars", `${box.offsetHeight - box.clientHeight}px`);
    words.hidden = !(left || right || below);
    words.textContent = [right && (heads.length ? `${counted(columns, noun)} to the right →` : "it goes on to the right →"), left && !right && "← there is more to the left",
      below && (rows.length ? `${counted(under, "row")} below ↓` : "it goes on below ↓")].filter(Boolean).join("   ") || "this is the end of it, scroll back for the rest";
  }
  new ResizeObserver(look).observe(box);
  box.addEventListener("scroll", look, {passive: true});
  document.addEventListener("input", look);
  look();
}
