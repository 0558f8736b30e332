// Shows the page again when something happens in the lab. The server renders; this only asks for it and puts it in place.
"use strict";

const connection = document.getElementById("connection");
// Progress is no event: while something runs, the page is asked for this often.
const REFRESH_MS = 3000;
// Events that come together are shown together.
const GATHER_MS = 150;

let timer = null;
let isAsking = false;
let isStale = false;

function say(words, state) {
  if (connection.textContent !== words) connection.textContent = words;
  connection.dataset.state = state;
}

// The answer to a form that was refused stands where nothing can be asked for: its page is elsewhere.
const page = document.getElementById("content").dataset.address;
if (page) history.replaceState(null, "", page);

// What has the keyboard's focus, so that its like has it afterwards.
function focused(part) {
  const active = document.activeElement;
  if (!part.contains(active)) return null;
  const leads = (element) => element.getAttribute("href") ?? element.closest("form")?.getAttribute("action") ?? null;
  const to = leads(active);
  return { in: (other) => Array.from(other.querySelectorAll("a, button")).find((it) => to && leads(it) === to) };
}

async function refresh() {
  if (isAsking) {
    isStale = true;
    return;
  }
  isAsking = true;
  isStale = false;
  try {
    const response = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (response.redirected) {
      location.reload();
      return;
    }
    const text = await response.text();
    const shown = new DOMParser().parseFromString(text, "text/html").getElementById("live");
    const here = document.getElementById("live");
    // Who is reading is not disturbed by what has not changed, nor who is filling something in.
    const isFilledIn = here.contains(document.activeElement) && document.activeElement.matches("input, select, textarea");
    if (response.ok && shown && shown.innerHTML !== here.innerHTML && !isFilledIn) {
      const focus = focused(here);
      // What was ticked stays so.
      for (const { name, value } of here.querySelectorAll("input[type=checkbox]:checked")) {
        const box = shown.querySelector(`input[name="${CSS.escape(name)}"][value="${CSS.escape(value)}"]`);
        if (box) box.checked = true;
      }
      here.replaceWith(document.adoptNode(shown));
      focus?.in(shown)?.focus({ preventScroll: true });
    }
  } catch {
    // The stream says that the lab is away, and when it is back.
  } finally {
    isAsking = false;
    if (isStale) schedule();
  }
}

function schedule() {
  if (timer === null) {
    timer = setTimeout(() => {
      timer = null;
      refresh();
    }, GATHER_MS);
  }
}

function listen() {
  const events = new EventSource("/api/v1/events");
  events.onopen = () => {
    say("live", "live");
    schedule();
  };
  events.onmessage = schedule;
  events.onerror = () => {
    say("the lab does not answer; trying again", "away");
    // A browser gives up after an answer that is no stream.
    if (events.readyState === EventSource.CLOSED) setTimeout(listen, REFRESH_MS);
  };
}

listen();
setInterval(() => {
  if (!document.hidden && document.querySelector("main .running, main .busy, main progress")) schedule();
}, REFRESH_MS);
