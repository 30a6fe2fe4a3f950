/**
 * A message's HTML in a frame without any rights: no scripts, no forms, no way out. The server has sanitised it; the policy of this page,
 * which the frame inherits, keeps it from loading anything.
 */

/** A tag as the server writes it: its values in double quotes, without angle brackets. */
const TAG = /<[a-z][^<>]*>/giu
const STYLE = / style="[^"]*"/giu

/** What is left of a message is its text, its tables and what it brought itself. Its styles would be refused by the policy of this page. */
export const plainHtml = (html: string): string => {
  // What is in a template is no part of any page: nothing in it loads or runs. A browser reports even there a style that its policy refuses
  const { content: parsed } = Object.assign(document.createElement("template"), {
    innerHTML: html.replaceAll(TAG, (tag) => tag.replaceAll(STYLE, ""))
  })
  for (const element of parsed.querySelectorAll("script, style, link, meta, base, iframe, object, embed, form")) element.remove()
  for (const element of parsed.querySelectorAll("*")) {
    for (const { name } of [...element.attributes]) if (name === "style" || name.startsWith("on")) element.removeAttribute(name)
    const source = element.getAttribute("src")
    if (source !== null && !source.startsWith("data:image/")) element.removeAttribute("src")
    element.removeAttribute("srcset")
  }
  const body = document.createElement("div")
  body.append(parsed)
  return `<!doctype html><meta name="color-scheme" content="light dark"><title>Message</title>${body.innerHTML}`
}

export const MailFrame = ({ html, title }: { readonly html: string; readonly title: string }) => (
  <iframe class="mail" sandbox="" title={title} srcdoc={plainHtml(html)} />
)
