// A button at the start of the short route hides what is not on it. Whoever
// follows a link to a hidden section wants to see it: the whole chapter is back.
addEventListener("DOMContentLoaded", () => {
  const start = document.querySelector("blockquote.route-start");
  if (!start) return;
  const page = document.documentElement;
  const button = document.createElement("button");
  const show = short => {
    page.classList.toggle("short-route", short);
    button.setAttribute("aria-pressed", short);
  };
  button.type = "button";
  button.className = "route-switch";
  button.textContent = "Show the short route only";
  button.addEventListener("click", () => show(!page.classList.contains("short-route")));
  start.append(button);
  show(false);
  const unhide = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target || target.checkVisibility()) return;
    show(false);
    target.scrollIntoView();
  };
  addEventListener("hashchange", unhide);
  // A link that was followed before changes no hash.
  addEventListener("click", event => event.target.closest?.('a[href^="#"]') && setTimeout(unhide));
});
