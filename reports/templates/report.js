"use strict";
(() => {
  const announce = document.getElementById("announce");

  const key = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.sort === undefined ? null : Number(cell.dataset.sort);
  };

  // Rows without a number stay last in both directions; equal rows keep their order.
  const compare = (one, other, column, numeric, sign) => {
    if (!numeric) {
      return sign * one.cells[column].textContent.localeCompare(other.cells[column].textContent, "en");
    }
    const [a, b] = [key(one, column), key(other, column)];
    if (a === null || b === null) return (a === null) - (b === null);
    return sign * (a - b);
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    if (body.rows.length < 2) continue;
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") === "descending" || !head.hasAttribute("aria-sort");
        for (const one of heads) one.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = [...body.rows];
        const numeric = rows.some((row) => key(row, column) !== null);
        rows.sort((one, other) => compare(one, other, column, numeric, up ? 1 : -1));
        body.append(...rows);
        announce.textContent = `Sorted by ${button.textContent}, ${up ? "ascending" : "descending"}.`;
      });
    });
  }

  // A link into a closed section opens it.
  const reveal = () => {
    if (location.hash.length < 2) return;
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let node = target; node; node = node.parentElement) {
      if (node.tagName === "DETAILS") node.open = true;
    }
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();

  const opened = [];
  addEventListener("beforeprint", () => {
    for (const node of document.querySelectorAll("details:not([open])")) {
      node.open = true;
      opened.push(node);
    }
  });
  addEventListener("afterprint", () => {
    for (const node of opened.splice(0)) node.open = false;
  });
})();
