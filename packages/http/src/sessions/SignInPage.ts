/**
 * The page that a mailed link leads to. It signs in only when its button is pressed, so that a program that checks links in mails uses none
 * up. The token is in the fragment of the address, which browsers send to nobody. The page leads to one page of this host, or stays.
 */
import { Effect } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { CurrentExchange } from "../Exchange.ts"

export const PATH = "/sign-in"

export interface Options {
  /** How the host calls itself. */
  readonly service: string
  /** The path below the public address that the browser opens once it is signed in. False: the page says that it is, and stays. */
  readonly home: `/${string}` | false
}

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" }

const escaped = (text: string): string => text.replaceAll(/[&<>"']/gu, (character) => ENTITIES[character] ?? character)

const htmlOf = (service: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Sign in to ${escaped(service)}</title>
<link rel="stylesheet" href="sign-in.css">
<script src="sign-in.js" defer></script>
</head>
<body>
<main>
<h1>Sign in to ${escaped(service)}</h1>
<p id="message" role="status">Press the button to sign in with this browser.</p>
<button id="sign-in" type="button">Sign in</button>
<noscript><p>This page needs JavaScript.</p></noscript>
</main>
</body>
</html>
`

/** The colours and the letters of the web tool, which a host may serve without. */
const CSS = `:root {
  color-scheme: light dark;
  --ground: #f5f6f4; --sheet: #ffffff; --ink: #16201f; --soft: #52605e; --rule: #dde2de; --accent: #0b6663; --accent-ink: #ffffff;
}
@media (prefers-color-scheme: dark) {
  :root { --ground: #0f1414; --sheet: #171e1d; --ink: #e6ecea; --soft: #a2b0ad; --rule: #2a3533; --accent: #6cc9c2; --accent-ink: #062321 }
}
* { box-sizing: border-box }
html {
  background: var(--ground); color: var(--ink);
  font: 400 0.9375rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif;
}
body { margin: 0; display: grid; min-height: 100vh; padding: 1rem; place-items: center }
main { width: 100%; max-width: 26rem; padding: 1.5rem; background: var(--sheet); border: 1px solid var(--rule); border-radius: 0.625rem }
h1 { margin: 0 0 0.5rem; font-size: 1.5rem; font-weight: 650; letter-spacing: -0.015em; line-height: 1.25 }
#message { margin: 0 0 1.5rem; color: var(--soft) }
button {
  min-height: 2.5rem; padding: 0.5rem 1rem; background: var(--accent); color: var(--accent-ink);
  border: 1px solid var(--accent); border-radius: 0.5rem; font: inherit; font-weight: 560; cursor: pointer;
}
button:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
button:disabled { cursor: default; opacity: 0.65 }
`

/** What happens once the browser is signed in. Paths are relative: a proxy in front may serve this host below a path of its own. */
const endOf = (home: Options["home"]): string =>
  home === false ? "button.hidden = true" : `location.replace(${JSON.stringify(`.${home}`)})`

const scriptOf = (home: Options["home"]): string => `const token = location.hash.slice(1)
// Neither the history nor a shared screen shows the token
history.replaceState(null, "", location.pathname)
const message = document.getElementById("message")
const button = document.getElementById("sign-in")
const refuse = (text) => {
  message.textContent = text
  button.hidden = true
}
if (token === "") refuse("This address has no sign-in token. Open the link in the mail, or ask for a new one.")
button.addEventListener("click", async () => {
  button.disabled = true
  try {
    const answer = await fetch("api/v1/sessions/link", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token })
    })
    if (answer.ok) {
      message.textContent = "You are signed in."
      ${endOf(home)}
      return
    }
    const { error } = await answer.json()
    refuse(error.message)
  } catch {
    message.textContent = "The service cannot be reached. Try again."
    button.disabled = false
  }
})
`

const HEADERS = {
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
  "x-frame-options": "DENY",
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

const file = (path: `/${string}`, contentType: string, text: string): HttpRouter.Route<never, never> =>
  HttpRouter.route(
    "GET",
    path,
    Effect.map(CurrentExchange, (exchange) => {
      exchange.route = path
      return HttpServerResponse.text(text, { contentType, headers: HEADERS })
    })
  )

/** The page, its script and its style. */
export const routesOf = ({ home, service }: Options): ReadonlyArray<HttpRouter.Route<never, never>> => [
  file(PATH, "text/html; charset=utf-8", htmlOf(service)),
  file(`${PATH}.js`, "text/javascript; charset=utf-8", scriptOf(home)),
  file(`${PATH}.css`, "text/css; charset=utf-8", CSS)
]
