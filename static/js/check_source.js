// Looks at a file before it is sent, to save a round trip, and sends it once. The server checks again and decides.

const form = document.querySelector("[data-check-source]");

/** @param {Uint8Array} bytes @param {string} name @param {number} limit @returns {string} what is wrong, or "" */
export function complaint(bytes, name, limit) {
  if (bytes.length === 0) return "The file is empty.";
  if (bytes.length > limit) return `The file has ${bytes.length} bytes; at most ${limit} are taken.`;
  const isZip = bytes[0] === 0x50 && bytes[1] === 0x4b;
  if (isZip) return "";
  if (/\.zip$/i.test(name)) return "The name ends in .zip, but this is no zip archive.";
  if (bytes.includes(0)) return "There is a NUL byte in the file. Send source text.";
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return "The file is not UTF-8. Save it as UTF-8.";
  }
  if (!/\bsolution\b|import\s*\*|\bexec\b|\bglobals\b/.test(text)) return "The file never names `solution`.";
  return "";
}

if (form) {
  const note = form.querySelector("[data-check-result]");
  const limit = Number(form.dataset.maxBytes);
  const input = form.querySelector("input[type=file]");
  const pasted = form.querySelector("textarea");
  const say = (text, good) => {
    note.hidden = !text;
    note.textContent = text;
    note.className = `note note--${good ? "success" : "warning"}`;
  };
  input.addEventListener("change", async () => {
    const file = input.files[0];
    if (!file) return say("", true);
    const wrong = complaint(new Uint8Array(await file.slice(0, limit + 1).arrayBuffer()), file.name, limit);
    say(wrong || `${file.name} looks fine.`, !wrong);
  });
  pasted.addEventListener("change", () => {
    const wrong = pasted.value ? complaint(new TextEncoder().encode(pasted.value), "solution.py", limit) : "";
    say(wrong, false);
  });
  const target = form.querySelector("select[name=target]");
  const unserved = form.querySelector("[data-target-note]");
  target.addEventListener("change", () => {
    unserved.hidden = !target.selectedOptions[0].textContent.endsWith("(no host serves it now)");
  });
  // A second click while the first is on its way would send the file twice.
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
  });
  window.addEventListener("pageshow", () => delete form.dataset.sent);
}
