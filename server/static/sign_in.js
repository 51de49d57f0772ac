// The page that signs in: by the form with the token, or by the code in the address of a sign-in link.
"use strict";

const form = document.getElementById("sign-in");
const notice = form.querySelector(".notice");
const button = form.querySelector("button");
const wanted = new URLSearchParams(location.search).get("to") || "/";
const page = /^\/[A-Za-z0-9]/.test(wanted) ? wanted : "/"; // of this server: `//` and `/\` begin the address of another

async function post(url, body) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json" },
    body: JSON.stringify(body),
  });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) {
    throw new Error([answer.detail || response.statusText, answer.hint || ""].filter(Boolean).join("\n"));
  }
  return answer;
}

async function signIn(credential) {
  notice.hidden = true;
  button.disabled = true;
  try {
    await post("/login", credential);
    // On its own page sign-in leads to the page that the link names, else to the front page; on any other to that page.
    if (location.pathname === "/sign-in") location.replace(page);
    else location.reload();
  } catch (error) {
    notice.textContent = error.message;
    notice.hidden = false;
  } finally {
    button.disabled = false;
  }
}

function byLink() {
  const code = location.hash.slice(1);
  if (!code) return;
  history.replaceState(null, "", "/sign-in"); // it counts once: not left in the address bar
  signIn({ code });
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  signIn({ token: String(new FormData(form).get("token")).trim() });
});
const provider = document.getElementById("provider");
if (provider && location.pathname !== "/sign-in") {
  provider.href += "?to=" + encodeURIComponent(location.pathname + location.search);
}

async function returned() {
  // From another site's page the browser sends no cookie with the first request: ask again from here.
  if ((await fetch("/api/me")).ok) location.replace(location.href);
}

if (location.pathname === "/sign-in") {
  addEventListener("hashchange", byLink); // a second link, pasted into the same tab
  byLink();
} else if (location.pathname.startsWith("/resume/")) {
  returned().catch(() => {});
}
