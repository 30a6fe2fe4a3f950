/**
 * The page that ends a price alert, which its mail leads to. It ends the alert only when its button is pressed, so that a program that
 * follows links in mails ends none. A mail program that knows RFC 8058 presses it by itself: it calls the same address with `POST`. The page
 * has no script, shows nothing of the alert, and leads nowhere.
 */
import { hash } from "node:crypto"
import { ALERT_END_PATH as PATH, PriceAlerts } from "@millrace/core"
import { Effect, Option } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { CurrentExchange } from "../Exchange.ts"
import { type Failure, problemOf, responseOf } from "../Problem.ts"

const CSS = `:root { color-scheme: light dark }
body { margin: 0; display: grid; min-height: 100vh; padding: 1rem; box-sizing: border-box; place-items: center; font: 1rem/1.5 system-ui, sans-serif }
main { max-width: 26rem }
h1 { margin: 0; font-size: 1.5rem }
button { min-height: 2.5rem; padding: 0.5rem 1rem; font: inherit; cursor: pointer }`

const pageOf = (title: string, body: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title}</title>
<style>${CSS}</style>
</head>
<body>
<main>
<h1>${title}</h1>
${body}
</main>
</body>
</html>
`

const ASK = pageOf(
  "End this price alert?",
  `<p>You will get no more mail about the price of this product.</p>
<form method="post"><button type="submit">End the alert</button></form>`
)
const ENDED = pageOf("The price alert has ended", "<p>You will get no more mail about the price of this product.</p>")
const UNKNOWN = pageOf("There is no such price alert", "<p>The address is not complete. Open the link in the mail again.</p>")

const HEADERS = {
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
  "x-frame-options": "DENY",
  "content-security-policy": `default-src 'none'; style-src 'sha256-${hash("sha256", CSS, "base64")}'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`
}

const shown = (status: 200 | 404, html: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(html, { status, contentType: "text/html; charset=utf-8", headers: HEADERS })

/** The routes of the page; none where there are no alerts. */
export const routes: Effect.Effect<ReadonlyArray<HttpRouter.Route<never, never>>> = Effect.map(
  Effect.serviceOption(PriceAlerts),
  Option.match({
    onNone: () => [],
    onSome: ({ isToken, unsubscribe }) => [
      route("GET", (token) => Effect.succeed(isToken(token) ? shown(200, ASK) : shown(404, UNKNOWN))),
      route("POST", (token) => Effect.map(unsubscribe(token), (isEnded) => (isEnded ? shown(200, ENDED) : shown(404, UNKNOWN))))
    ]
  })
)

const route = (method: "GET" | "POST", answer: (token: string) => Effect.Effect<HttpServerResponse.HttpServerResponse, Failure>) =>
  HttpRouter.route(
    method,
    PATH,
    Effect.gen(function* () {
      const exchange = yield* CurrentExchange
      exchange.route = PATH
      const { token } = yield* HttpServerRequest.ParsedSearchParams
      const answered = answer(typeof token === "string" ? token : "")
      return yield* Effect.catch(answered, (failure) => Effect.succeed(responseOf(problemOf(failure), exchange.id)))
    })
  )
