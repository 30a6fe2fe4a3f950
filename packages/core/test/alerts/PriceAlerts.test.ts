/** Price alerts over several processes: what is mailed, once, and what is never mailed. */
import { Effect, Exit, Fiber, Logger, Scope } from "effect"
import { describe, expect } from "vitest"
import type { OutgoingMail } from "../../src/accounts/MailRelay.ts"
import { LIMIT } from "../../src/alerts/PriceAlerts.ts"
import {
  type Fate,
  host,
  logText,
  type Posted,
  pass,
  read,
  register,
  relayOf,
  stores,
  testing as test,
  typesIn,
  URL_OF_MUG,
  verified
} from "./Hosts.ts"

const ADA = "ada@example.com"

const testing: typeof test = (name, body) => test(name, Effect.provide(body, Logger.layer([])))

/** Two processes over one store, and what their relay was given. */
const two = Effect.fnUntraced(function* (fateOf: (mail: OutgoingMail) => Fate = () => "sent") {
  const shared = yield* stores
  const posted: Array<Posted> = []
  const relay = relayOf(posted, fateOf)
  const [here, there] = [yield* host(shared, { relay }), yield* host(shared, { relay })]
  const accountId = yield* verified(here, ADA)
  return { shared, posted, here, there, accountId }
})

const idsOf = (posted: ReadonlyArray<Posted>) => posted.map(({ mail }) => mail.messageId)

describe("a fall", () => {
  testing(
    "is mailed once, whichever process reads the price, and again only after the price was above the target",
    Effect.gen(function* () {
      const { accountId, here, posted, shared, there } = yield* two()
      yield* read(here, "30")
      const { alertId, current, unsubscribe } = yield* register(here, accountId, "20")
      expect(current).toBe("30")
      for (const price of ["25", "20", "19.99", "18"]) {
        yield* read(there, price)
        yield* pass(60)
      }
      expect(posted).toHaveLength(1)
      const mail = posted[0]?.mail
      expect(mail).toMatchObject({
        to: ADA,
        subject: "Price alert: Blue mug",
        unsubscribe,
        messageId: `price-alert.${alertId}.1@api.example.com`
      })
      for (const part of ["Blue mug", "costs 20 now", "at 20 or below", URL_OF_MUG, unsubscribe]) expect(mail?.text).toContain(part)
      for (const price of ["20.01", "20"]) {
        yield* read(here, price)
        yield* pass(60)
      }
      expect(idsOf(posted)).toEqual([1, 2].map((fall) => `price-alert.${alertId}.${fall}@api.example.com`))
      const mailed = ["PriceAlertReached", "AlertMailSending", "AlertMailSent"]
      expect(yield* typesIn(shared)).toEqual(["PriceAlertRegistered", ...mailed, "PriceAlertArmed", ...mailed])
    })
  )

  testing(
    "is there at once where the price is at the target when the alert is registered",
    Effect.gen(function* () {
      const { accountId, here, posted } = yield* two()
      yield* read(here, "19.9")
      yield* register(here, accountId, "19.9")
      yield* pass(60)
      expect(posted).toHaveLength(1)
    })
  )

  testing(
    "is not told again for a target that is registered again, and is for one that the price was above",
    Effect.gen(function* () {
      const { accountId, here, posted, there } = yield* two()
      yield* read(here, "19")
      for (const target of ["20", "20", "25"]) {
        yield* register(there, accountId, target)
        yield* pass(60)
      }
      expect(posted).toHaveLength(1)
      yield* register(here, accountId, "15")
      yield* pass(60)
      expect(posted).toHaveLength(1)
      yield* read(here, "15")
      yield* pass(60)
      expect(posted).toHaveLength(2)
    })
  )

  testing(
    "is of the price in the shop's currency, of this product, and read by a host: no claim is one",
    Effect.gen(function* () {
      const { accountId, here, posted } = yield* two()
      yield* read(here, "30", URL_OF_MUG, "EUR")
      yield* register(here, accountId, "20")
      yield* read(here, "10", URL_OF_MUG, "USD")
      yield* read(here, "10", "https://shop.example.com/products/other")
      yield* here.prices.claim(accountId, JSON.stringify(["url", "shop.example.com/products/mug"]), "10")
      yield* pass(60)
      expect(posted).toEqual([])
      yield* read(here, "20", `${URL_OF_MUG}?utm_source=mail#top`, "EUR")
      yield* pass(60)
      expect(posted[0]?.mail.text).toContain("costs 20 EUR now")
    })
  )

  testing(
    "is found whether the price comes before or after the registration",
    Effect.gen(function* () {
      const { accountId, here, posted, there } = yield* two()
      const products = Array.from({ length: 40 }, (_, i) => `https://shop.example.com/products/${i}`)
      yield* Effect.forEach(products, (url) => read(here, "30", url))
      yield* Effect.forEach(
        products.flatMap((url) => [Effect.asVoid(register(here, accountId, "20", url)), read(there, "20", url)]),
        (act) => act,
        { concurrency: "unbounded", discard: true }
      )
      yield* pass(120)
      expect(new Set(idsOf(posted)).size).toBe(products.length)
      expect(posted).toHaveLength(products.length)
    })
  )

  testing(
    "that no process was there to see is found by the next one",
    Effect.gen(function* () {
      const shared = yield* stores
      const posted: Array<Posted> = []
      const idle = yield* host(shared, { relay: relayOf([], () => "sent"), upkeep: false })
      const accountId = yield* verified(idle, ADA)
      yield* register(idle, accountId, "20")
      yield* read(idle, "20")
      yield* pass(60)
      yield* host(shared, { relay: relayOf(posted, () => "sent") })
      yield* pass(60)
      expect(posted).toHaveLength(1)
    })
  )
})

describe("a mail", () => {
  testing(
    "that is refused is sent again under its id after growing pauses, and given up at last",
    Effect.gen(function* () {
      const { accountId, here, posted, shared } = yield* two(() => "refused")
      yield* read(here, "10")
      yield* register(here, accountId, "20")
      yield* pass(30)
      expect(posted).toHaveLength(1)
      yield* pass(90)
      expect(posted).toHaveLength(2)
      yield* pass(25 * 3_600, 150)
      expect(posted).toHaveLength(8)
      expect(new Set(idsOf(posted)).size).toBe(1)
      expect((yield* typesIn(shared)).filter((type) => type === "AlertMailRefused")).toHaveLength(8)
    })
  )

  testing(
    "that is refused is not sent any more once the price is above the target again",
    Effect.gen(function* () {
      const { accountId, here, posted } = yield* two(() => "refused")
      yield* read(here, "10")
      yield* register(here, accountId, "20")
      yield* pass(10)
      yield* read(here, "30")
      yield* pass(3_600, 60)
      expect(posted).toHaveLength(1)
    })
  )

  testing(
    "whose answer is lost is in doubt, and never sent again",
    Effect.gen(function* () {
      const { accountId, here, posted, shared } = yield* two(() => "lost")
      yield* read(here, "10")
      yield* register(here, accountId, "20")
      yield* pass(26 * 3_600, 100)
      expect(posted).toHaveLength(1)
      expect((yield* typesIn(shared)).at(-1)).toBe("AlertMailInDoubt")
    })
  )

  testing(
    "whose process dies while it is sent is in doubt, which another process writes, and never sent again",
    Effect.gen(function* () {
      const shared = yield* stores
      const posted: Array<Posted> = []
      const scope = yield* Scope.make()
      const first = yield* Scope.provide(host(shared, { relay: relayOf(posted, () => "hangs") }), scope)
      const accountId = yield* verified(first, ADA)
      yield* read(first, "10")
      yield* register(first, accountId, "20")
      yield* pass(10)
      expect(posted).toHaveLength(1)
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      yield* pass(30)
      yield* Fiber.join(closing)
      yield* host(shared, { relay: relayOf(posted, () => "sent") })
      yield* pass(200)
      expect((yield* typesIn(shared)).at(-1)).toBe("AlertMailSending")
      yield* pass(26 * 3_600, 100)
      expect(posted).toHaveLength(1)
      expect((yield* typesIn(shared)).at(-1)).toBe("AlertMailInDoubt")
    })
  )

  testing(
    "that is being sent while its process closes is sent to its end, and noted",
    Effect.gen(function* () {
      const shared = yield* stores
      const posted: Array<Posted> = []
      const scope = yield* Scope.make()
      const first = yield* Scope.provide(host(shared, { relay: relayOf(posted, () => "sent", "6 seconds") }), scope)
      const accountId = yield* verified(first, ADA)
      yield* read(first, "10")
      yield* register(first, accountId, "20")
      yield* pass(3)
      expect((yield* typesIn(shared)).at(-1)).toBe("AlertMailSending")
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      yield* pass(30)
      yield* Fiber.join(closing)
      expect(posted).toHaveLength(1)
      expect((yield* typesIn(shared)).at(-1)).toBe("AlertMailSent")
    })
  )

  testing(
    "is not sent by a process without a relay, and is by one that has it; a day later it is not sent any more",
    Effect.gen(function* () {
      const shared = yield* stores
      const posted: Array<Posted> = []
      const scope = yield* Scope.make()
      const without = yield* Scope.provide(host(shared), scope)
      const other = yield* host(shared, { relay: relayOf([], () => "sent"), upkeep: false })
      const accountId = yield* verified(without, ADA)
      yield* register(other, accountId, "20")
      yield* read(without, "20")
      yield* pass(25 * 3_600, 50)
      expect(yield* typesIn(shared)).toEqual(["PriceAlertRegistered", "PriceAlertReached"])
      yield* host(shared, { relay: relayOf(posted, () => "sent") })
      yield* pass(60)
      expect((yield* typesIn(shared)).at(-1)).toBe("AlertMailWithheld")
      yield* Effect.forEach(["30", "20"], (price) => read(other, price))
      yield* pass(60)
      expect(posted).toHaveLength(1)
      yield* Scope.close(scope, Exit.void)
    })
  )

  testing(
    "has what the caller wrote in one line, so that it adds no header",
    Effect.gen(function* () {
      const { accountId, here, posted } = yield* two()
      yield* read(here, "10")
      const name = `Mug\r\nBcc: eve@example.com\r\n\r\n<b>hi</b>\u2028\u202egnp\u0000 ${"x".repeat(400)}`
      yield* register(here, accountId, "20", URL_OF_MUG, name)
      yield* pass(60)
      const { subject = "", text = "" } = posted[0]?.mail ?? {}
      expect(subject).toMatch(/^Price alert: Mug Bcc: eve@example\.com <b>hi<\/b> gnp x+…$/u)
      expect(text.split("\n")[0]).toMatch(/^Mug Bcc: eve@example\.com <b>hi<\/b> gnp x{400}$/u)
    })
  )
})

describe("an account", () => {
  testing(
    "without a verified address, or at a host without a relay, has no alerts",
    Effect.gen(function* () {
      const { here, shared } = yield* two()
      const unverified = yield* here.registration.open("bob@example.com")
      expect((yield* Effect.flip(register(here, unverified, "20")))._tag).toBe("AddressNotVerified")
      const nameless = yield* here.registration.open({ reference: "user-7" })
      yield* here.registration.verify(nameless)
      expect((yield* Effect.flip(register(here, nameless, "20")))._tag).toBe("AddressNotVerified")
      const without = yield* host(shared)
      expect((yield* Effect.flip(register(without, yield* verified(without, "eve@example.com"), "20")))._tag).toBe("MailNotConfigured")
      expect(yield* typesIn(shared)).toEqual([])
    })
  )

  testing(
    "that is suspended gets no mail, and one that is closed or erased has no alerts any more",
    Effect.gen(function* () {
      const { accountId, here, posted, shared, there } = yield* two()
      yield* register(here, accountId, "20")
      yield* here.registration.suspend(accountId)
      yield* read(here, "20")
      yield* pass(60)
      expect((yield* typesIn(shared)).at(-1)).toBe("AlertMailWithheld")
      yield* here.registration.reinstate(accountId)
      yield* pass(3_600)
      expect(posted).toEqual([])
      const others = yield* Effect.forEach(["bob@example.com", "eve@example.com"], (email) => verified(here, email))
      yield* Effect.forEach(others, (other) => register(here, other, "5"))
      yield* pass(10)
      yield* there.registration.close(others[0] ?? "")
      yield* there.registration.erase(others[1] ?? "")
      yield* pass(60)
      yield* read(here, "5")
      yield* pass(60)
      expect((yield* typesIn(shared)).filter((type) => type === "PriceAlertEnded")).toHaveLength(2)
      expect(posted).toEqual([])
    })
  )

  testing(
    "ends an alert by its token, at any process, and by no other text; it can be registered again",
    Effect.gen(function* () {
      const { accountId, here, posted, there } = yield* two()
      const { unsubscribe } = yield* register(here, accountId, "20")
      const token = new URL(unsubscribe).searchParams.get("token") ?? ""
      const [id = "", secret = ""] = token.split(".")
      for (const wrong of ["", id, secret, `${id}.`, `${id}.${id}`, `${secret}.${secret}`, `${token}.x`, `${token}x`]) {
        expect(there.alerts.isToken(wrong)).toBe(false)
        expect(yield* there.alerts.unsubscribe(wrong)).toBe(false)
      }
      expect(there.alerts.isToken(token)).toBe(true)
      for (const _ of [1, 2]) expect(yield* there.alerts.unsubscribe(token)).toBe(true)
      yield* read(here, "10")
      yield* pass(60)
      expect(posted).toEqual([])
      yield* register(here, accountId, "20")
      yield* pass(60)
      expect(posted).toHaveLength(1)
    })
  )

  testing(
    "has so many alerts at most, of which one for each product",
    Effect.gen(function* () {
      const { accountId, here } = yield* two()
      const urlOf = (i: number) => `https://shop.example.com/products/${i}`
      yield* Effect.forEach(Array.from({ length: LIMIT }), (_, i) => register(here, accountId, "20", urlOf(i)), { concurrency: 16 })
      yield* register(here, accountId, "19", urlOf(0))
      expect(yield* Effect.flip(register(here, accountId, "20", urlOf(LIMIT)))).toMatchObject({ _tag: "TooManyAlerts", limit: LIMIT })
    })
  )

  testing(
    "is the only thing in clear that the log has of an alert, beside prices",
    Effect.gen(function* () {
      const { accountId, here, posted, shared } = yield* two()
      const { unsubscribe } = yield* register(here, accountId, "20", URL_OF_MUG, "Canary mug")
      yield* read(here, "10")
      yield* pass(60)
      expect(posted).toHaveLength(1)
      const log = yield* logText(shared)
      for (const secret of ["Canary", "shop.example.com", ADA, unsubscribe.split(".").at(-1) ?? ""]) expect(log).not.toContain(secret)
    })
  )

  testing(
    "gets the outcome of a call whose process died after it registered",
    Effect.gen(function* () {
      const { accountId, here, there } = yield* two()
      yield* read(here, "30")
      const registered = yield* register(here, accountId, "20")
      const { state } = yield* here.alerts.alerts.read(registered.alertId)
      expect(yield* there.alerts.recover(state.terms?.reservationId ?? "")).toEqual(registered)
      expect(yield* there.alerts.recover("res_01M7YKD46JCP6VGMKADN3JSPJP")).toBeUndefined()
    })
  )
})
