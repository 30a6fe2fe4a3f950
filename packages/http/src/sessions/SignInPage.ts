/**
 * The page that a mailed link leads to. It signs in only when its button is pressed, so that a program that checks links in mails uses none
 * up. The token is in the fragment of the address, which browsers send to nobody. The page leads to one page of this host, and nowhere else.
 */
import { Effect } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { CurrentExchange } from "../Exchange.ts"

export const PATH = "/sign-in"

export interface Options {
  /** How the host calls itself. */
  readonly service: string
  /** The path below the public address that the browser opens once it is signed in. */
  readonly home: `/${string}`
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

const CSS = `:root { color-scheme: light dark; font: 1.0625rem/1.5 system-ui, sans-serif }
body { margin: 0; display: grid; min-height: 100vh; place-items: center }
main { max-width: 26rem; padding: 1.5rem }
h1 { font-size: 1.5rem; margin: 0 0 0.5rem }
button { font: inherit; padding: 0.6rem 1.25rem; border: 1px solid; border-radius: 0.4rem; cursor: pointer }
`

/** Paths are relative: a proxy in front may serve this host below a path of its own. */
const scriptOf = (home: string): string => `const token = location.hash.slice(1)
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
      location.replace(${JSON.stringify(`.${home}`)})
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
