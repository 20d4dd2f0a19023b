// The texts of the page, in the language of the browser or in the one that was chosen.

import { chinese } from "./chinese.js";
import { english } from "./english.js";

const CHOICE = "studio.language";

function chosen() {
  try {
    return localStorage.getItem(CHOICE);
  } catch {
    return null;
  }
}

const preferred = (navigator.languages?.[0] ?? navigator.language ?? "en").toLowerCase().startsWith("zh") ? "zh" : "en";

export const language = ["en", "zh"].includes(chosen()) ? chosen() : preferred;
export const texts = language === "zh" ? chinese : english;

document.documentElement.lang = language === "zh" ? "zh-CN" : "en";

// Shows the page in the other language. Where it is, is in its address.
export function switchLanguage() {
  try {
    localStorage.setItem(CHOICE, language === "zh" ? "en" : "zh");
  } catch {
    // Without storage, the language of the browser stays.
  }
  location.reload();
}
