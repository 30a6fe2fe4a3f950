/** Sign-ups, mailed links and sessions at a host of the library: mounted in servers of its own, with every kind of mail relay. */
import { createServer, type RequestListener } from "node:http"
import type { AddressInfo } from "node:net"
import { MailNotSent, MailRelay } from "@millrace/core"
import { Effect, Exit, Layer, Scope } from "effect"
import express from "express"
import { afterEach, describe, expect, it } from "vitest"
import * as Smtp from "../../../upstreams/test/mail/Host.ts"
import * as Mailboxes from "../../../upstreams/test/mail/Mailboxes.ts"
import { mailing } from "../../src/host/SignInOptions.ts"
import { createMillrace, type Host, type OutgoingMail, type SendMail, type SignInOptions, standard } from "../../src/index.ts"
import { linkIn, visitorOf } from "./Visitor.ts"

const ADA = "ada@example.org"
const PUBLIC_URL = "https://acme.example.com"

const endings: Array<() => Promise<unknown>> = []
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end()
})

const listen = async (listener: RequestListener): Promise<string> => {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  endings.push(() => new Promise((resolve) => server.close(resolve)))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const OWN = "The host's own page"

/** How a host mounts Millrace, beside a page of its own. */
const MOUNTS = {
  "node:http": ({ handler }: Host) => listen((request, response) => handler(request, response, () => response.end(OWN))),
  Express: ({ handler }: Host) => {
    const app = express()
    app.use(handler)
    app.use((_, response) => void response.send(OWN))
    return listen(app)
  }
}

interface Given extends Partial<SignInOptions> {
  readonly mount?: keyof typeof MOUNTS
  readonly lines?: Array<string>
}

const open = async ({ lines = [], mount = "node:http", ...signIn }: Given = {}) => {
  const mails: Array<OutgoingMail> = []
  const write = (text: string, fields: object) => void lines.push(`${text} ${JSON.stringify(fields)}`)
  const millrace = await createMillrace({
    store: "memory:",
    standard: ["bin"],
    log: { warn: write, error: write },
    signIn: { publicUrl: PUBLIC_URL, mailRelay: async (mail) => void mails.push(mail), ...signIn }
  })
  endings.push(millrace.close)
  const origin = await MOUNTS[mount](millrace)
  return { millrace, mails, origin, visitor: visitorOf(origin) }
}

describe.each(["node:http", "Express"] as const)("mounted in %s", (mount) => {
  it("a person signs up, tries a call, opens the link, spends credits, and signs out", async () => {
    const { mails, millrace, visitor } = await open({ mount, service: "Acme" })
    expect(await visitor.signUp(ADA)).toMatchObject({ status: 202, data: { expires_in: 900 } })
    expect((await visitor.current()).data).toMatchObject({ verified: false, address: ADA })
    const tried = await visitor.ask("/api/v1/bin/457173")
    expect([tried.status, tried.headers.get("x-trial-remaining")]).toEqual([200, "9"])
    expect(mails).toMatchObject([{ to: ADA, subject: "Sign in to Acme" }])
    const link = linkIn(mails[0]?.text)
    expect(link).toMatch(/^https:\/\/acme\.example\.com\/sign-in#link_/u)

    expect((await visitor.follow(link)).data).toMatchObject({ verified: true, address: ADA, proof: "mailLink" })
    expect((await visitor.follow(link)).code).toBe("sign_in_refused")
    const spent = await visitor.ask("/api/v1/bin/457173")
    expect(spent.headers.get("x-credits-balance")).toBe("199.5")
    const account = String((await visitor.current()).data["account_id"])
    expect(await millrace.balance(account)).toMatchObject({ available: 199.5 })
    expect(await millrace.accounts.show(account)).toMatchObject({ email: ADA })

    expect((await visitor.ask("/api/v1/sessions/current", "DELETE")).code).toBe("cross_site_request")
    expect((await visitor.change("/api/v1/sessions/current", "DELETE")).data).toEqual({ ended: 1 })
    expect((await visitor.current()).code).toBe("unauthorized")
    expect((await millrace.audit()).problems).toEqual([])
  })

  it("the sign-in page is there with its files, and the host has every other path", async () => {
    const { origin } = await open({ mount, service: "Ada & <Sons>", home: "/account?from=mail" })
    const page = await fetch(`${origin}/sign-in`)
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'")
    expect(await page.text()).toContain("<h1>Sign in to Ada &amp; &lt;Sons&gt;</h1>")
    expect(await (await fetch(`${origin}/sign-in.js`)).text()).toContain('location.replace("./account?from=mail")')
    expect((await fetch(`${origin}/sign-in.css`)).headers.get("content-type")).toBe("text/css; charset=utf-8")
    for (const path of ["/", "/account", "/sign-in.html", "/sign-inside", "/signup", "/assets/main.js"])
      expect([path, await (await fetch(`${origin}${path}`)).text()]).toEqual([path, OWN])
  })
})

describe("an account that the host opened", () => {
  it("is that of its address: the first link verifies it, and its id stays", async () => {
    const { mails, millrace, visitor } = await open()
    const account = await millrace.accounts.open({ id: "user-7", email: ADA })
    await visitor.askForLink(" Ada@Example.org")
    await visitor.follow(linkIn(mails[0]?.text))
    expect((await visitor.current()).data).toMatchObject({ account_id: account, verified: true })
    expect(await millrace.balance("user-7")).toMatchObject({ available: 200 })
  })

  it("takes its sessions with it when it is closed", async () => {
    const { mails, millrace, visitor } = await open()
    await millrace.accounts.open({ id: "user-7", email: ADA })
    await visitor.askForLink(ADA)
    await visitor.follow(linkIn(mails[0]?.text))
    await millrace.accounts.close("user-7")
    expect((await visitor.current()).code).toBe("unauthorized")
  })
})

describe("a mail relay", () => {
  it("by its address sends with SMTP, from the host of the public address or from another sender", async () => {
    const mailboxes = Mailboxes.make([Smtp.ANNA, Smtp.BERT])
    const scope = Scope.makeUnsafe()
    endings.push(() => Effect.runPromise(Scope.close(scope, Exit.void)))
    const { port } = await Effect.runPromise(Scope.provide(Smtp.serve(mailboxes), scope))
    const mailRelay = `smtp://127.0.0.1:${port}`
    const [usual, other] = [await open({ mailRelay }), await open({ mailRelay, mailFrom: "post@acme.example.net" })]
    await usual.visitor.signUp(Smtp.ANNA)
    await other.visitor.signUp(Smtp.BERT)
    const [first] = mailboxes.taken.get(Smtp.ANNA) ?? []
    expect(first?.sender).toBe("no-reply@acme.example.com")
    expect(mailboxes.taken.get(Smtp.BERT)?.map(({ sender }) => sender)).toEqual(["post@acme.example.net"])
    const raw = Buffer.from(first?.raw ?? [])
      .toString()
      .replaceAll(/=\r\n/gu, "")
      .replaceAll("=3D", "=")
    expect(raw).toContain("Subject: Sign in to Millrace")
    expect((await usual.visitor.follow(linkIn(raw))).status).toBe(201)
  })

  it("may be a layer", async () => {
    const sent: Array<OutgoingMail> = []
    const mailRelay = Layer.succeed(MailRelay, {
      configured: Effect.void,
      send: (mail) =>
        mail.to === ADA ? Effect.sync(() => void sent.push(mail)) : Effect.fail(new MailNotSent({ reason: "only Ada has mail" }))
    })
    const lines: Array<string> = []
    const { visitor } = await open({ mailRelay, lines })
    await visitor.askForLink(ADA)
    expect((await visitor.follow(linkIn(sent[0]?.text))).status).toBe(201)
    expect(await visitor.askForLink("bob@example.org")).toMatchObject({ status: 503, code: "upstream_unavailable" })
    expect(lines.join("\n")).toContain("only Ada has mail")
  })

  it("that throws is answered with 503, and the log says where, without the address and the words of the error", async () => {
    const throwing: ReadonlyArray<SendMail> = [
      ({ to }) => {
        throw new RangeError(`no mail to ${to}`)
      },
      ({ to }) => Promise.reject(new RangeError(`no mail to ${to}`))
    ]
    for (const mailRelay of throwing) {
      const lines: Array<string> = []
      const { millrace, visitor } = await open({ mailRelay, lines })
      expect(await visitor.askForLink(ADA)).toMatchObject({ status: 503, code: "upstream_unavailable" })
      expect(lines.join("\n")).toContain("RangeError")
      expect(lines.join("\n")).toContain("SignIn.test.ts")
      expect(lines.join("\n")).not.toContain("ada@")
      expect(await millrace.accounts.list()).toEqual([])
    }
  })
})

it("a host without the option has no sign-up, and no sign-in page", async () => {
  const millrace = await createMillrace({ store: "memory:", standard: ["bin"], log: {} })
  endings.push(millrace.close)
  const origin = await MOUNTS["node:http"](millrace)
  expect(await visitorOf(origin).signUp(ADA)).toMatchObject({ status: 404, code: "route_not_found" })
  expect(await (await fetch(`${origin}/sign-in`)).text()).toBe(OWN)
})

it.each<[unknown, string]>([
  [{}, "signIn of createMillrace needs publicUrl"],
  [{ publicUrl: PUBLIC_URL }, "signIn of createMillrace needs mailRelay"],
  [{ publicUrl: "http://acme.example.com", mailRelay: () => {} }, "an address such as https://app.example.com"],
  [{ publicUrl: "https://acme.example.com/?a=1", mailRelay: () => {} }, "without a query"],
  [{ publicUrl: PUBLIC_URL, mailRelay: "relay.example.com" }, "a relay such as smtp://"],
  [{ publicUrl: PUBLIC_URL, mailRelay: "smtp://name:%E0%A4%A@relay.example.com" }, "a relay such as smtp://"],
  [{ publicUrl: PUBLIC_URL, mailRelay: "print" }, "a relay such as smtp://"],
  [{ publicUrl: PUBLIC_URL, mailRelay: () => {}, mailFrom: "no-reply@acme.example.com" }, "mailRelay is no address"],
  [{ publicUrl: PUBLIC_URL, mailRelay: "smtp://127.0.0.1", mailFrom: "Acme <no-reply@acme.example.com>" }, "an address such as no-reply@"],
  [{ publicUrl: PUBLIC_URL, mailRelay: () => {}, service: "Acme\r\nBcc: eve@example.org" }, "a name of one line"],
  [{ publicUrl: PUBLIC_URL, mailRelay: () => {}, home: "https://evil.example" }, "a path of this host"],
  [{ publicUrl: PUBLIC_URL, mailRelay: () => {}, home: "//evil.example" }, "a path of this host"],
  [{ publicUrl: PUBLIC_URL, mailRelay: () => {}, home: "/\\evil.example" }, "a path of this host"],
  [{ publicUrl: PUBLIC_URL, mailRelay: () => {}, from: "no-reply@acme.example.com" }, "there are publicUrl, mailRelay"]
])("the mistake %o is told at once: %s", async (signIn, told) => {
  const given = { store: "memory:", standard: ["bin"], signIn } as never
  await expect(createMillrace(given)).rejects.toMatchObject({ code: "invalid_argument", message: expect.stringContaining(told) })
})

it("the password of a relay is not shown with a mistake", async () => {
  for (const wrong of [{ mailRelay: "http://name:canary@relay.example.com" }, { publicUrl: "https://name:canary@acme.example.com" }]) {
    const signIn = { publicUrl: PUBLIC_URL, mailRelay: () => {}, ...wrong }
    const refused = createMillrace({ store: "memory:", standard: ["bin"], signIn })
    await expect(refused).rejects.toMatchObject({ code: "invalid_argument", message: expect.not.stringContaining("canary") })
  }
})

it("the sign-in page keeps its path from the web tool", async () => {
  const refused = createMillrace({ store: "memory:", standard: ["bin"], webTool: "/sign-in" })
  await expect(refused).rejects.toMatchObject({ code: "invalid_argument" })
})

describe.each(["node:http", "Express"] as const)("price alerts, mounted in %s", (mount) => {
  it("are registered for a verified account and ended by their page; a host without mail has none", async () => {
    const millrace = await createMillrace({
      store: "memory:",
      standard: ["products"],
      log: {},
      signIn: { publicUrl: PUBLIC_URL, mailRelay: () => undefined }
    })
    endings.push(millrace.close)
    const origin = await MOUNTS[mount](millrace)
    const wish = { url: "https://shop.example.com/products/mug", name: "Mug", price: 25, target_price: 20, consent: true } as const
    const register = standard.priceAlerts.register
    const stranger = await millrace.accounts.open({ email: "eve@example.org" })
    await expect(millrace.run(register, wish, { account: stranger })).rejects.toMatchObject({ code: "address_not_verified" })
    const account = await millrace.accounts.open({ email: ADA, verified: true })
    const { charged, data } = await millrace.run(register, wish, { account, idempotencyKey: "alert-1" })
    expect([charged, data.status, data.current_price]).toEqual([1, "accepted", null])
    const again = await millrace.run(register, wish, { account, idempotencyKey: "alert-1" })
    expect([again.charged, again.data]).toEqual([0, data])
    const end = data.unsubscribe_url.replace(PUBLIC_URL, origin)
    expect(await (await fetch(end)).text()).toContain("End this price alert?")
    expect(await (await fetch(end, { method: "POST" })).text()).toContain("has ended")
    expect((await fetch(`${origin}/price-alerts/end?token=none`)).status).toBe(404)

    const silent = await createMillrace({ store: "memory:", standard: ["products"], log: {} })
    endings.push(silent.close)
    const other = await silent.accounts.open({ email: ADA, verified: true })
    await expect(silent.run(register, wish, { account: other })).rejects.toMatchObject({
      code: "upstream_not_configured",
      message: expect.stringContaining("signIn: { publicUrl, mailRelay }")
    })
  })
})

describe("a function that sends mail", () => {
  it.each([
    ["says that the message was refused", Object.assign(new Error("no"), { refused: true }), "refused"],
    ["only throws", new Error("no"), "unknown"],
    ["throws no error", "no", "unknown"]
  ])("%s", async (_, thrown, outcome) => {
    const relay = mailing(
      {
        publicUrl: PUBLIC_URL,
        mailRelay: () => {
          throw thrown
        }
      },
      undefined
    )
    const sent = MailRelay.use(({ send }) => send({ to: ADA, subject: "", text: "" }))
    expect(await Effect.runPromise(Effect.flip(Effect.provide(sent, relay)))).toMatchObject({ _tag: "MailNotSent", outcome })
  })
})
