/** Secrets sent through every route and every command, looked for afterwards in all that is written anywhere. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Exit, Scope } from "effect"
import { expect, onTestFinished, test } from "vitest"
import * as Authenticator from "../../packages/http/test/Authenticator.ts"
import * as GitHubServer from "../../packages/upstreams/test/codehost/GitHubServer.ts"
import * as NameServer from "../../packages/upstreams/test/dns/NameServer.ts"
import { DOMAIN, serve as listen } from "../../packages/upstreams/test/mail/Host.ts"
import * as Mailboxes from "../../packages/upstreams/test/mail/Mailboxes.ts"
import * as PlacesServer from "../../packages/upstreams/test/mapsearch/PlacesServer.ts"
import * as LocalService from "../../packages/upstreams/test/shared/LocalService.ts"
import * as YouTubeServer from "../../packages/upstreams/test/video/YouTubeServer.ts"
import { canary, isIn } from "./Canary.ts"
import { millrace } from "./InProcess.ts"
import {
  type Answer,
  ask,
  auditOf,
  BIN,
  type Call,
  call,
  GRAMMAR,
  header,
  Issued,
  newStore,
  Opened,
  problemOf,
  serve,
  UNLIMITED
} from "./Server.ts"
import { bring, NUMBER, SETTINGS as SMS, twilioCall } from "./TextMessages.ts"

/** A name server of which one domain is broken. */
const nameServer = async (): Promise<string> => {
  const scope = Scope.makeUnsafe()
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const script = (query: NameServer.Query): NameServer.Reply =>
    query.name.startsWith("broken.") ? NameServer.servfail : NameServer.zone({ [query.name]: [NameServer.a("192.0.2.7")] })(query)
  return (await Effect.runPromise(Scope.provide(NameServer.serve(script), scope))).address
}

/** A map service. */
const places = async (): Promise<string> => {
  const scope = Scope.makeUnsafe()
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  return (await Effect.runPromise(Scope.provide(LocalService.serve(PlacesServer.answer()), scope))).url.href
}

/** A platform that hosts code, of which one user's page is broken. */
const codeHost = async (broken: string): Promise<string> => {
  const scope = Scope.makeUnsafe()
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const answer = GitHubServer.answer(({ path }) => (path.includes(broken) ? { status: 500, body: { message: path } } : undefined))
  return (await Effect.runPromise(Scope.provide(LocalService.serve(answer), scope))).url.href
}

/** A platform that shows videos. */
const videoSite = async (): Promise<string> => {
  const scope = Scope.makeUnsafe()
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  return (await Effect.runPromise(Scope.provide(LocalService.serve(YouTubeServer.answer()), scope))).url.href
}

/** A relay that takes mail to one address, and the token in the last one. */
const relayTo = async (address: string) => {
  const scope = Scope.makeUnsafe()
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const mailboxes = Mailboxes.make([address])
  const { port } = await Effect.runPromise(Scope.provide(listen(mailboxes), scope))
  const token = (): string => {
    const text = Buffer.from(mailboxes.taken.get(address)?.at(-1)?.raw ?? []).toString()
    return /#(?<token>\S+)/u.exec(text.replaceAll("=\r\n", ""))?.groups?.["token"] ?? ""
  }
  return { url: `smtp://127.0.0.1:${port}`, token }
}

/** The values of the cookies that an answer sets. */
const cookiesOf = ({ headers }: Answer): ReadonlyArray<string> =>
  [headers["set-cookie"] ?? []].flat().map((cookie) => cookie.split(";")[0] ?? "")

/** The first piece of an answer that never ends. */
const firstOf = async (url: string, key: string): Promise<string> => {
  const { body } = await fetch(url, { headers: { authorization: `Bearer ${key}` } })
  const reader = body?.getReader()
  const { value } = (await reader?.read()) ?? {}
  await reader?.cancel()
  return Buffer.from(value ?? []).toString()
}

const filesOf = (folder: string): ReadonlyArray<readonly [string, Buffer]> =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name, parentPath }) => [name, readFileSync(join(parentPath, name))])

const INBOX = /inbox_[0-9A-Z]{26}/u

const json = (body: unknown) => ({ method: "POST", body: JSON.stringify(body) })

type Web = (path: string, cookies: ReadonlyArray<string>, options?: Call) => Promise<Answer>

/** Adds a passkey in a session, signs in with it and removes it. Its id, its name and what the browser keeps are secrets. */
const passkeyOf = async (web: Web, port: string, cookies: ReadonlyArray<string>, csrf: string, secrets: Record<string, string>) => {
  // Passkeys need a name of this machine
  const host = `localhost:${port}`
  const device = Authenticator.make({ origin: `http://${host}`, rpId: "localhost" })
  const ask = async (path: string, sent: ReadonlyArray<string>, body?: object, method = "POST") => {
    const answer = await web(path, sent, { ...(body === undefined ? {} : json(body)), method, headers: { host, "x-csrf-token": csrf } })
    return { ...answer, data: JSON.parse(answer.body).data }
  }
  const passkeys = "/api/v1/passkeys"
  const name = canary("passkey")
  const credential = device.create((await ask(`${passkeys}/options`, cookies)).data.options)
  const { data } = await ask(passkeys, cookies, { credential, name })
  expect((await ask(passkeys, cookies, undefined, "GET")).data.passkeys).toMatchObject([{ name, passkey_id: data.passkey_id }])
  const asked = await ask("/api/v1/sessions/passkey/options", [])
  const signed = await ask("/api/v1/sessions/passkey", cookiesOf(asked), { credential: device.get(asked.data.options) })
  expect(signed.status).toBe(201)
  expect((await ask(`${passkeys}/${data.passkey_id}`, cookies, undefined, "DELETE")).status).toBe(200)
  const cookie = cookiesOf(asked)[0]?.split("=").at(-1) ?? ""
  Object.assign(secrets, { passkey: name, credential: credential.id, passkeyCookie: cookie })
}

test("no key, address, label, idempotency key or text of a request is written in plain text", { timeout: 120_000 }, async () => {
  const { folder, url: store } = newStore()
  const name = canary("email")
  const email = `${name}@example.com`
  const secrets: Record<string, string> = {
    email: name,
    label: canary("label"),
    text: canary("text"),
    idempotencyKey: canary("idem"),
    wrong: canary("wrong"),
    asked: canary("asked"),
    person: canary("person"),
    browser: canary("browser"),
    youtubeKey: YouTubeServer.KEY
  }
  const has = (secret: string): string => secrets[secret] ?? ""

  // What administrators are shown once, or ask for, is theirs to see; what they are told when something fails is searched
  const { account, key } = await ask(Opened, ["accounts", "open", "--store", store, "--email", email, "--verified"])
  const issued = await ask(Issued, ["keys", "issue", "--store", store, "--account", account, "--label", has("label")])
  const readOnly = await ask(Issued, ["keys", "issue", "--store", store, "--account", account, "--scope", "read"])
  const scopes = ["read", "operations", "keys", "billing"].flatMap((scope) => ["--scope", scope])
  const managing = await ask(Issued, ["keys", "issue", "--store", store, "--account", account, ...scopes])
  // The id of a key stands in clear, its secret must not
  for (const [name, text] of Object.entries({ key, labelled: issued.key, readOnly: readOnly.key, managing: managing.key }))
    secrets[name] = text.split("_").at(-1) ?? ""

  const dns = await nameServer()
  const videos = { MILLRACE_VIDEO: "youtube", MILLRACE_YOUTUBE_URL: await videoSite(), MILLRACE_YOUTUBE_KEY: YouTubeServer.KEY }
  const person = `${has("person")}@${DOMAIN}`
  const relay = await relayTo(person)
  const host = await codeHost(has("wrong"))
  const server = await serve(
    [
      ...["--store", store, "--log-level", "trace", "--dns-servers", dns, "--metrics-port", "0", "--speech", "espeak"],
      ...["--code-host", host, "--map-search", `places:${await places()}`],
      ...["--payments", "manual", "--mail-domain", "inbox.example", ...SMS, "--proxy", "127.0.0.1:0", "--proxy-country", "DE"]
    ],
    { env: { ...UNLIMITED, MILLRACE_MAIL_RELAY: relay.url, MILLRACE_MAP_SEARCH_KEY: PlacesServer.KEY, ...videos } }
  )
  const answers: Array<Answer> = []
  const send = async (path: string, options: Call = {}) => {
    const answer = await call(`${server.url}${path}`, { key: issued.key, ...options })
    answers.push(answer)
    return answer
  }
  const idempotent = { "idempotency-key": has("idempotencyKey") }
  const grammar = (body: unknown, options: Call = {}) => send(GRAMMAR, { method: "POST", body: JSON.stringify(body), ...options })

  const checked = await grammar({ text: `${has("text")} is an apple.` }, { headers: idempotent })
  expect(checked.status).toBe(200)
  expect((await grammar({ text: `${has("text")} is an apple.` }, { headers: idempotent })).headers["idempotent-replayed"]).toBe("true")
  expect((await grammar({ text: `Another ${has("text")}.` }, { headers: idempotent })).status).toBe(422)
  expect((await grammar({ text: "An apple.", language: has("wrong").slice(0, 20) })).status).toBe(422)
  expect((await grammar({ text: has("text"), more: has("wrong") })).status).toBe(422)
  expect((await send(GRAMMAR, { method: "POST", body: `{"text": "${has("text")}` })).status).toBe(422)
  expect((await grammar({ text: "An apple." }, { headers: { "x-max-credits": has("wrong") } })).status).toBe(422)
  expect((await grammar({ text: has("text") }, { key: readOnly.key })).status).toBe(403)
  expect((await send(BIN, { headers: idempotent, key })).status).toBe(422)
  expect((await send(`${BIN}?secret=${has("wrong")}`)).status).toBe(200)
  expect((await send("/api/v1/bin/000000")).status).toBe(404)
  expect((await send(`/api/v1/bin/${has("wrong")}`)).status).toBe(422)
  expect((await send(`/nowhere/${has("wrong")}`)).status).toBe(404)
  expect((await send("/api/v1/account/billing")).status).toBe(200)
  expect((await send("/api/v1/account/billing", { key: `mr_live_01m7ykd477z577dbnpmz7j9kdz_${has("wrong")}` })).status).toBe(401)
  expect((await send("/api/v1/account/billing", { key: has("wrong") })).status).toBe(401)
  expect((await send("/api/v1/account/billing", { headers: { cookie: has("wrong"), "user-agent": has("wrong") } })).status).toBe(200)

  // A label of a domain has 63 letters at most
  const asked = has("asked").slice(0, 60)
  expect((await send(`/api/v1/dns/${asked}.example.com?type=A`, { headers: idempotent })).status).toBe(422)
  expect((await send(`/api/v1/dns/${asked}.example.com?type=A`)).status).toBe(200)
  expect((await send(`/api/v1/dns/broken.${asked}.example.com?type=ANY`)).status).toBe(503)
  expect((await send(`/api/v1/dns/${asked}.example.com?type=${has("wrong")}`)).status).toBe(422)
  expect((await send("/api/v1/email/validate", json({ email: `${asked}@${asked}.example.com`, consensus: true }))).status).toBe(200)
  expect((await send("/api/v1/email/validate", json({ email: `${asked}@broken.${asked}.example.com` }))).status).toBe(503)
  expect((await send("/api/v1/email/validate-batch", json({ emails: [`${asked}@example.com`, asked] }))).status).toBe(200)
  expect((await send(`/api/v1/content/prompts/topics?q=${asked}`)).status).toBe(200)
  const page = encodeURIComponent(`https://shop.example.com/${asked}`)
  expect((await send(`/api/v1/products/selectors?url=${page}&selector_name=getProductName`)).status).toBe(200)
  for (const name of [`url=${page}`, `sku=${asked}`, `variant_id=${asked}&store_id=${asked}`])
    expect((await send(`/api/v1/products/price-history?${name}&price=9.99`)).status).toBe(200)
  expect((await send("/api/v1/products/price-compare", json({ name: asked, price: 9.99 }))).status).toBe(200)
  expect((await send(`/api/v1/products/selectors?url=${asked}&selector_name=getProductName`)).status).toBe(422)
  // The name and the address of what is watched, and what ends the alert
  const watched = { url: `https://shop.example.com/${asked}`, name: asked, price: 9.99, target_price: 5, consent: true }
  const alert = await send("/api/v1/products/price-alerts", {
    ...json(watched),
    headers: { "idempotency-key": `${has("idempotencyKey")}-alert` }
  })
  expect(alert.status).toBe(202)
  expect((await send("/api/v1/products/price-alerts", json({ ...watched, url: has("wrong") }))).status).toBe(422)
  const ending = new URL(JSON.parse(alert.body).data.unsubscribe_url)
  secrets["alert"] = ending.searchParams.get("token")?.split(".")[1] ?? ""
  // A page, not an error object
  expect((await call(`${server.url}${ending.pathname}?token=${has("wrong")}`)).status).toBe(404)
  for (const method of ["GET", "POST"])
    expect((await send(`${ending.pathname}${ending.search}`, { key: undefined, method })).status).toBe(200)
  // What is searched is the caller's; what is submitted is for everybody to read, but not who submitted it
  expect((await send(`/api/v1/coupons?store=${asked}&product_name=${asked}&shop_username=${asked}`)).status).toBe(200)
  const coupon = { domain: "shop.example.com", code: "SAVE20", worked: true }
  const submitting = { ...json(coupon), headers: { "idempotency-key": `${has("idempotencyKey")}-coupon` } }
  expect((await send("/api/v1/coupons/submit", submitting)).status).toBe(200)
  expect((await send("/api/v1/coupons/request-store", json({ domain: "wanted.example.com" }))).status).toBe(200)
  const shown = "/api/v1/social/videosite"
  expect((await send(`${shown}/search?q=${asked}`)).status).toBe(200)
  expect((await send(`${shown}/search?q=${asked}&page_token=${has("wrong")}`)).status).toBe(422)
  for (const path of ["stats", "details", "tags", "comments"]) expect((await send(`${shown}/videos/${asked}/${path}`)).status).toBe(404)
  for (const path of ["videos", "outliers", "about"]) expect((await send(`${shown}/channels/${asked}/${path}`)).status).toBe(404)
  expect((await send(`${shown}/playlists/${asked}`)).status).toBe(404)
  expect((await send(`${shown}/videos/${asked}/download`)).status).toBe(503)
  for (const path of ["limits", "activity"]) expect((await send(`/api/v1/account/${path}?${has("wrong")}`)).status).toBe(200)
  for (const path of ["", "/capabilities", "/config", "/groups"])
    expect((await send(`/api/v1/catalog${path}?${has("wrong")}`, { headers: { traceparent: has("wrong") } })).status).toBe(200)
  expect((await send(`/api/v1/catalog/capabilities/${has("wrong")}`)).status).toBe(404)

  // Jobs: what is asked for, and what comes of it, is kept to be read, sealed
  const jobOf = ({ body }: Answer): string => JSON.parse(body).data.id ?? JSON.parse(body).data.job_id
  const waiting = { headers: { prefer: "wait=60" } }
  const job = (await send("/api/v1/audio/tts", { ...json({ text: `${has("text")}.` }), ...waiting })).body
  const speech = `/api/v1/audio/tts/${JSON.parse(job).data.id}`
  expect(JSON.parse(job).data.status).toBe("succeeded")
  expect((await send(`${speech}?${has("wrong")}`)).status).toBe(200)
  expect((await send(`${speech}/artifact`, { headers: { "if-none-match": has("wrong"), range: has("wrong") } })).status).toBe(200)
  const deleted = jobOf(await send("/api/v1/audio/tts", json({ text: `${has("text")}.` })))
  expect((await send(`/api/v1/audio/tts/${deleted}`, { method: "DELETE" })).status).toBe(200)
  expect((await send("/api/v1/audio/tts", json({ text: has("text"), voice: has("wrong").slice(0, 20) }))).status).toBe(422)
  expect((await send(`/api/v1/audio/voices?${has("wrong")}`)).status).toBe(200)
  expect((await send("/api/v1/ai/images", json({ prompt: has("text") }))).status).toBe(503)
  expect((await send("/api/v1/ai/images/edit", json({ prompt: has("text"), allow_prompt_only: true }))).status).toBe(503)
  const image = `/api/v1/ai/images/${has("wrong")}`
  for (const [path, method] of [
    [image, "GET"],
    [image, "DELETE"],
    [`${image}/artifact`, "GET"]
  ] as const)
    expect((await send(path, { method })).status).toBe(404)
  const emails = [`${asked}@example.com`, `${asked}@broken.${asked}.example.com`]
  const validation = await send("/api/v1/email/validation-jobs", { ...json({ emails }), ...waiting })
  expect(validation.status).toBe(201)
  const validated = `/api/v1/email/validation-jobs/${jobOf(validation)}`
  expect((await send(`${validated}?per_page=1`)).status).toBe(200)
  expect((await send(`${validated}?page=${has("wrong")}`)).status).toBe(422)

  const created = await send("/api/v1/temp-mail/inboxes", json({ lifetime: 600, label: has("label") }))
  expect(created.status).toBe(200)
  const inbox = `/api/v1/temp-mail/inboxes/${INBOX.exec(created.body)?.[0]}`
  const message = `${inbox}/messages/${has("wrong")}`
  expect((await send(`${inbox}?${has("wrong")}`)).status).toBe(200)
  expect((await send(`${inbox}/messages?page=${has("wrong")}`)).status).toBe(422)
  for (const path of [message, `${message}/raw`, `${message}/attachments/1`]) expect((await send(path)).status).toBe(404)
  expect((await send(`${inbox}/rotate`, { method: "POST" })).status).toBe(200)
  expect((await send(inbox, { method: "DELETE" })).status).toBe(200)
  expect((await bring(server, twilioCall("SM1", `482913 is your ${has("text")} code`))).status).toBe(200)
  const wait = { source: "sms", identifier: has("asked"), phone_number: "+15005550009", timeout: 15 }
  expect((await send("/api/v1/verify/wait", json(wait))).status).toBe(422)
  const found = { ...wait, identifier: has("text"), phone_number: NUMBER, since: "2026-01-31T12:00:00Z" }
  expect((await send("/api/v1/verify/wait", json(found))).body).toContain("482913")
  expect((await send(`/api/v1/proxy/locations?country=${has("wrong")}`)).status).toBe(200)
  expect((await send("/api/v1/proxy/sessions", json({ country: has("wrong") }))).status).toBe(422)
  const session = await send("/api/v1/proxy/sessions", json({}))
  expect(session.status).toBe(201)
  secrets["proxy"] = JSON.parse(session.body).data.password

  // There is no shop at this machine, whether or not its name server knows the name
  const shop = "/api/v1/ecommerce/storeplatform/catalog"
  expect([404, 503]).toContain((await send(`${shop}?domain=${asked}.localhost`)).status)
  expect((await send(`${shop}?domain=${has("wrong")}%20`)).status).toBe(422)
  const leads = "/api/v1/local/mapsearch/leads"
  expect((await send(`${leads}?query=${asked}`)).status).toBe(200)
  expect((await send(`${leads}?query=${asked}&hl=${has("wrong")}`)).status).toBe(422)
  const hosted = "/api/v1/social/codehost"
  for (const path of [`users/${asked}`, `users/${asked}/activity`, `repos/${asked}/${asked}`])
    expect((await send(`${hosted}/${path}`)).status).toBe(404)
  expect((await send(`${hosted}/repos?q=${asked}`)).status).toBe(200)
  expect((await send(`${hosted}/repos?q=${asked}&sort=${has("wrong")}`)).status).toBe(422)
  expect((await send(`${hosted}/users/${has("wrong")}`)).status).toBe(503)

  for (const query of ["", `?operation=${has("wrong")}`, `?page=${has("wrong")}`])
    expect([200, 422]).toContain((await send(`/api/v1/account/calls${query}`)).status)

  // Payments
  const manage = { key: managing.key }
  const topUp = (options: Call) => send("/api/v1/billing/topups", { ...json({ pack: "10" }), ...options })
  expect((await topUp({ key: readOnly.key })).status).toBe(403)
  expect((await topUp({ ...manage, headers: idempotent })).status).toBe(422)
  const paid = await topUp(manage)
  expect(paid.status).toBe(200)
  const capture = (payment: string) => send(`/api/v1/billing/topups/${payment}/capture`, { method: "POST", ...manage })
  expect((await capture(JSON.parse(paid.body).data.payment_id)).status).toBe(200)
  expect((await capture(has("wrong"))).status).toBe(404)
  expect((await send("/api/v1/billing/topups?open=true", manage)).status).toBe(200)
  expect((await send(`/api/v1/billing/topups?open=${has("wrong")}`, manage)).status).toBe(422)

  expect((await send("/api/v1/billing/subscriptions", { ...json({ plan: has("wrong") }), ...manage })).status).toBe(422)
  expect((await send(`/api/v1/billing/subscriptions?${has("wrong")}`, manage)).status).toBe(200)
  expect((await send(`/api/v1/billing/subscriptions/${has("wrong")}`, { method: "DELETE", ...manage })).status).toBe(404)
  expect((await send(`/api/v1/billing/invoices?page=${has("wrong")}`, manage)).status).toBe(422)
  expect((await send("/api/v1/billing/invoices", manage)).status).toBe(200)
  expect((await send(`/api/v1/billing/invoices/${has("wrong").slice(0, 30)}`, manage)).status).toBe(404)

  // Keys of their owner
  expect((await send("/api/v1/account/keys")).status).toBe(403)
  const owned = await send("/api/v1/account/keys", { ...json({ name: has("label") }), ...manage })
  const keyPath = `/api/v1/account/keys/${JSON.parse(owned.body).data.key_id}`
  const rotated = await send(`${keyPath}/rotate`, { ...json({}), ...manage })
  for (const { body } of [owned, rotated]) secrets[`key ${Object.keys(secrets).length}`] = JSON.parse(body).data.key.split("_").at(-1)
  expect((await send("/api/v1/account/keys", manage)).status).toBe(200)
  expect((await send(keyPath, { method: "DELETE", ...manage })).status).toBe(200)
  expect((await send(`/api/v1/account/keys/${has("wrong")}`, { method: "DELETE", ...manage })).status).toBe(404)

  // A person signs up, and signs in again
  const browser = { "user-agent": has("browser"), "sec-fetch-site": "same-origin" }
  const web = (path: string, cookies: ReadonlyArray<string>, { headers = {}, ...options }: Call = {}) =>
    send(path, { ...options, key: undefined, headers: { ...browser, cookie: cookies.join("; "), ...headers } })
  const signedUp = await web("/api/v1/signup", [], json({ address: person }))
  expect(signedUp.status).toBe(202)
  const links: Array<string> = []
  let cookies = cookiesOf(signedUp)
  for (const _ of [1, 2]) {
    links.push(relay.token())
    expect((await web("/api/v1/sessions/link", [], json({ token: relay.token() }))).status).toBe(403)
    const followed = await web("/api/v1/sessions/link", cookies, json({ token: relay.token() }))
    expect(followed.status).toBe(201)
    const asked = await web("/api/v1/sessions", cookiesOf(followed), json({ address: person }))
    expect(asked.status).toBe(202)
    const own = [cookies, cookiesOf(followed), cookiesOf(asked)].flat().map((cookie) => cookie.split(/[=.]/u).at(-1) ?? "")
    for (const secret of own.filter((secret) => secret !== "")) secrets[`cookie ${Object.keys(secrets).length}`] = secret
    cookies = [...cookiesOf(followed).slice(0, 1), ...cookiesOf(asked)]
  }
  for (const link of links) secrets[`link ${link}`] = link.split(".")[1] ?? ""
  const current = await web("/api/v1/sessions/current", cookies)
  expect(current.body).toContain(person)
  const csrf = JSON.parse(current.body).data.csrf_token
  secrets["csrf"] = csrf
  expect((await web("/api/v1/sessions", cookies)).body).toContain(has("browser"))
  const change = { method: "DELETE", headers: { "x-csrf-token": csrf } }
  await passkeyOf(web, new URL(server.url).port, cookies, csrf, secrets)
  expect((await web(`/api/v1/sessions/${has("wrong")}`, cookies, change)).status).toBe(404)
  expect((await web("/api/v1/sessions/current", cookies, { ...change, headers: { "x-csrf-token": has("wrong") } })).status).toBe(403)
  expect((await web("/api/v1/sessions", cookies, change)).status).toBe(200)
  expect((await web(`/sign-in?${has("wrong")}`, [])).status).toBe(200)

  expect(await firstOf(`${server.url}/api/v1/account/events?${has("wrong")}`, issued.key)).toContain("event: ")

  const document = await send(`/api/v1/openapi.json?${has("wrong")}`)
  expect((await send(`/docs?${has("wrong")}`)).status).toBe(200)
  // Every route was one of them
  const paths: ReadonlyArray<string> = Object.keys(JSON.parse(document.body).paths)
  const routes = paths.map((path) => path.replaceAll(/\{(\w+)\}/gu, ":$1"))
  for (const path of ["/health", "/ready"]) expect((await send(`${path}?${has("wrong")}`)).status).toBe(200)
  // Errors never show what was sent, but for a language or a voice that is not known: it is what the caller asks about
  for (const answer of answers.filter(({ status }) => status >= 400)) {
    const { message } = problemOf(answer)
    for (const [name, secret] of Object.entries(secrets)) expect(message.includes(secret) ? name : "").toBe("")
  }
  const metrics = (await call(server.metrics ?? "")).body

  const nameless = async (...args: ReadonlyArray<string>) => {
    const { stdout, stderr } = await millrace([...args, "--store", store])
    return `${stdout}${stderr}`
  }
  const told = await Promise.all([
    nameless("events"),
    nameless("journal", "--format", "jsonl"),
    nameless("charges", "show", "--request", header(checked, "x-request-id")),
    nameless("balance", "--account", account),
    nameless("holds", "list"),
    nameless("audit"),
    millrace(["accounts", "open", "--store", store, "--email", email]).then(({ code, stderr }) => {
      expect(code).toBe(1)
      return stderr
    }),
    millrace(["accounts", "show", "--store", store, "--account", account], { env: { MILLRACE_MASTER_KEY: "42".repeat(32) } }).then(
      ({ code, stderr }) => {
        expect(code).toBe(1)
        return stderr
      }
    )
  ])
  const alive = filesOf(folder)
  await server.stop()
  const stopped = filesOf(folder)

  const written = [
    ...alive,
    ...stopped,
    ["output", Buffer.from(server.stdout + server.stderr)] as const,
    ["metrics", Buffer.from(metrics)] as const,
    ...told.map((text, i) => [`output of command ${i}`, Buffer.from(text)] as const)
  ]
  expect(alive.map(([file]) => file)).toEqual(
    expect.arrayContaining(["millrace.db", "millrace.db-wal", "millrace.state.db", "millrace.state.db-wal"])
  )
  expect(routes.filter((route) => !server.stderr.includes(`"route":"${route}"`))).toEqual([])
  expect(metrics).toContain("millrace_")
  // The search itself finds what is there
  expect(isIn(account, Buffer.concat(stopped.map(([, bytes]) => bytes)))).toBe(true)
  for (const [name, secret] of Object.entries(secrets)) {
    expect(secret.length).toBeGreaterThan(20)
    expect(written.filter(([, bytes]) => isIn(secret, bytes)).map(([place]) => `${name} in ${place}`)).toEqual([])
  }
  await auditOf(store)
})
