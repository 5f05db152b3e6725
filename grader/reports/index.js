
"use strict";
// Sorts and filters the table of submissions, and makes the cells of the map lead to what happened. All data is in the page's elements.
const table = document.querySelector("table.submissions"), map = document.querySelector("table.map");

if (table) {
  document.documentElement.classList.add("script");
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells], rows = [...body.rows];
  const find = document.getElementById("find"), status = document.getElementById("status"), shown = document.getElementById("shown");
  const names = new Intl.Collator(undefined, {numeric: true});
  const value = (row, column) => row.cells[column].dataset.value ?? row.querySelector("bdi").textContent;

  function sort(column, direction) {
    const sign = direction === "ascending" ? 1 : -1, number = heads[column].classList.contains("n");
    const sorted = rows.toSorted((one, other) => {
      const [a, b] = [value(one, column), value(other, column)];
      // What has no value comes last, whichever way.
      if (a === "" || b === "") return (a === "") - (b === "");
      return sign * (number ? a - b : names.compare(a, b));
    });
    body.append(...sorted);
    for (const head of heads) head.removeAttribute("aria-sort");
    heads[column].setAttribute("aria-sort", direction);
  }

  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort"), first = head.classList.contains("n") ? "descending" : "ascending";
      sort(column, now === null ? first : now === "ascending" ? "descending" : "ascending");
    });
  });

  function filter() {
    const text = find.value.trim().toLowerCase();
    let count = 0;
    for (const row of rows) {
      row.hidden = !(row.cells[0].textContent.toLowerCase().includes(text) && (status.value === "" || row.dataset.status === status.value));
      count += !row.hidden;
    }
    shown.textContent = `${count} of ${rows.length} shown`;
  }
  find.addEventListener("input", filter);
  status.addEventListener("change", filter);
  filter();
}

if (map) {
  const checks = [...map.tHead.rows[1].cells];
  const cell = event => event.target.closest("td:not([colspan])");
  map.addEventListener("pointerover", event => {
    const at = cell(event), check = at && checks[at.cellIndex - 1];
    if (check) at.title = `${at.parentElement.querySelector("bdi").textContent}\n${check.title}`;
  });
  map.addEventListener("click", event => {
    const at = cell(event);
    if (at) location.href = `${at.parentElement.querySelector("a").href}#${checks[at.cellIndex - 1].dataset.id}`;
  });
}
