// A chat page: sends a message without loading the page again, and shows the answer while it is written. What it shows at the end is what the
// server has: it asks for the conversation then, and after each lost connection.
"use strict";

const here = location.pathname;
const log = document.getElementById("log");
const form = document.getElementById("chat");
const box = document.getElementById("message");
const number = document.getElementById("n");
const send = document.getElementById("send");
const problem = document.getElementById("problem");
const said = document.getElementById("said"); // for screen readers: whole answers, not each piece
const AGAIN_MS = 2000;
const WORDS = {
  working: "The answer is being written.",
  waiting: "A person has to agree before the answer continues.",
  failed: "There is no answer to this message. Send it again, or try later.",
  lost: "The connection is lost. It is tried again.",
};
let source = null;
let later = 0;

function element(tag, className, text) {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

function item(className, who, text, kind) {
  const made = element("li", className, "");
  made.append(element("span", "who", who), element("p", kind, text));
  return made;
}

function show(turns) {
  const items = turns.flatMap((turn) => {
    const failed = turn.state === "failed";
    const answer = item("answer", "Answer", turn.answer ?? WORDS[turn.state], turn.answer ? "text" : failed ? "text err" : "text quiet");
    answer.dataset.n = turn.n;
    answer.dataset.state = turn.state;
    return [item("asked", "You", turn.message, "text"), answer];
  });
  log.replaceChildren(...items);
  const last = turns.at(-1);
  number.value = last ? last.n + 1 : 1;
  open(last && (last.state === "working" || last.state === "waiting") ? last.n : null);
  return last;
}

/** Whether an answer is under way, and of which message. */
function open(n) {
  if (source) source.close();
  source = null;
  clearTimeout(later);
  send.disabled = n !== null;
  log.setAttribute("aria-busy", String(n !== null));
  if (n === null) return;
  const answer = log.querySelector(`[data-n="${n}"]`);
  const text = answer.querySelector("p");
  let written = "";
  const write = (words, state) => {
    text.textContent = words;
    text.className = written && words === written ? "text" : "text quiet";
    answer.dataset.state = state;
  };
  source = new EventSource(`${here}/${n}/events`);
  source.addEventListener("begin", () => {
    written = "";
    write(WORDS.working, "working");
  });
  source.addEventListener("text", (event) => {
    written += JSON.parse(event.data).text;
    write(written, "working");
    follow();
  });
  source.addEventListener("waiting", () => {
    write(WORDS.waiting, "waiting");
    said.textContent = WORDS.waiting;
  });
  source.addEventListener("working", () => write(WORDS.working, "working"));
  source.addEventListener("end", () => load());
  source.addEventListener("error", () => {
    source.close(); // a stream that is opened again begins at its beginning
    written = "";
    write(WORDS.lost, "working");
    again();
  });
}

function again() {
  clearTimeout(later);
  later = setTimeout(load, AGAIN_MS);
}

async function load() {
  if (source) source.close();
  try {
    const response = await fetch(here, { headers: { Accept: "application/json" }, cache: "no-store" });
    if (!response.ok) throw new Error(response.statusText);
    const last = show((await response.json()).turns);
    if (last && last.state === "answered") said.textContent = `Answer: ${last.answer}`;
    if (last && last.state === "failed") said.textContent = WORDS.failed;
    follow();
  } catch {
    again();
  }
}

/** The end of the conversation stays in view, unless the reader has scrolled up. */
function follow() {
  const left = document.documentElement.scrollHeight - innerHeight - scrollY;
  if (left < 400) form.scrollIntoView({ block: "end" });
}

function tell(text) {
  problem.textContent = text;
  problem.hidden = text === "";
}

async function say() {
  const message = box.value.trim();
  if (!message || send.disabled) return;
  send.disabled = true;
  tell("");
  try {
    const response = await fetch(here, {
      method: "POST",
      headers: { Accept: "application/json" },
      body: new URLSearchParams({ message, n: number.value }),
    });
    if (!response.ok) {
      const answer = await response.json().catch(() => ({}));
      if (response.status === 409) await load();
      throw new Error([answer.detail, answer.hint].filter(Boolean).join(" ") || "The message was not sent. Try again.");
    }
    box.value = "";
    await load();
  } catch (error) {
    tell(error instanceof TypeError ? "The server cannot be reached. The message was not sent; try again." : error.message);
    if (source === null) send.disabled = false;
  }
  box.focus();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  say();
});
box.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  say();
});

for (const each of document.querySelectorAll(".scripted")) each.hidden = false;
const last = log.querySelector("li:last-child");
if (last && (last.dataset.state === "working" || last.dataset.state === "waiting")) open(Number(last.dataset.n));
follow();
