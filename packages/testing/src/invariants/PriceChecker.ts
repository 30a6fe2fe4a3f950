/** Checks observed and claimed prices, with bookkeeping of its own. */
import type { Product } from "@millrace/core"
import type { Report } from "./Rules.ts"

const DAY = 86_400_000

/** Without zeros that change nothing, so that equal prices are equal texts. */
const canonical = (price: string): string => {
  const [whole = "", part = ""] = price.split(".")
  return `${whole.replace(/^0+(?=\d)/u, "")}.${part.replace(/0+$/u, "")}`
}

export class PriceChecker {
  /** The newest price of each stream, its currency and its day. */
  readonly #newest = new Map<string, string>()
  readonly #report: Report

  constructor(report: Report) {
    this.#report = report
  }

  enter(stream: string, id: string, event: Product.ProductEvent | Product.ClaimEvent, at: number): void {
    if (!/^[\w-]{43}$/u.test(id)) this.#report("price", `${id} is no hash`)
    if (!/^\d{1,15}(?:\.\d{1,6})?$/u.test(event.price)) this.#report("price", `${event.price} is no exact decimal`)
    const currency = event._tag === "PriceObserved" ? event.currency : null
    const newest = JSON.stringify([canonical(event.price), currency, Math.floor(at / DAY)])
    if (this.#newest.get(stream) === newest) this.#report("price", "it was noted on this day")
    this.#newest.set(stream, newest)
    if (event._tag === "PriceObserved" && event.offer !== undefined) this.#offered(event.offer)
  }

  #offered({ title, url, variant }: NonNullable<Extract<Product.ProductEvent, { readonly _tag: "PriceObserved" }>["offer"]>): void {
    for (const text of variant === undefined ? [title] : [title, variant])
      if (text.trim() !== text || text === "" || /[\p{Cc}\p{Cs}]/u.test(text)) this.#report("offer", `${JSON.stringify(text)} is no line`)
    const address = URL.parse(url)
    if (
      address === null ||
      !/^https?:$/u.test(address.protocol) ||
      address.href !== url ||
      address.username !== "" ||
      address.password !== ""
    )
      this.#report("offer", `${url} is no address of the web`)
  }
}
