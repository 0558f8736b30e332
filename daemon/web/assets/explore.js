// Asks for the result of the placement that was clicked together, and puts it in place. All arithmetic is the lab's.
"use strict";

const form = document.getElementById("layers");
const RETRY_MS = 2000;
// Of answers that overtake one another the last one asked for counts.
let asked = 0;

function placement() {
  const chosen = form.querySelectorAll("input:checked");
  return Array.from(chosen, (input) => input.value).join("");
}

function replace(id, shown) {
  const [here, other] = [document, shown].map((page) => page.getElementById(id));
  // A list that was opened stays open.
  if (here.querySelector("details[open]")) other.querySelector("details")?.setAttribute("open", "");
  here.replaceWith(document.adoptNode(other));
}

async function show() {
  const mine = ++asked;
  const address = `${form.getAttribute("action")}?placement=${placement()}`;
  history.replaceState(null, "", address);
  try {
    const response = await fetch(address, { headers: { Accept: "text/html" } });
    const text = await response.text();
    if (mine !== asked) return;
    const shown = new DOMParser().parseFromString(text, "text/html");
    if (response.redirected || !shown.getElementById("result")) {
      location.reload();
      return;
    }
    replace("result", shown);
    replace("curve", shown);
    document.dispatchEvent(new Event("replaced"));
    learn();
  } catch {
    if (mine === asked) setTimeout(show, RETRY_MS);
  }
}

// The accuracy comes when it has been learnt.
function learn() {
  const mine = asked;
  if (document.getElementById("result").hasAttribute("data-learning")) {
    setTimeout(() => {
      if (mine === asked) show();
    }, RETRY_MS);
  }
}

form.addEventListener("change", show);
learn();
