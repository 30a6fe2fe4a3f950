/** Who sells a product at an observed price: what the product is called there, and where it can be bought. All of it is public. */
import { Schema } from "effect"
import { identityOf, normalisedUrl } from "./ProductIdentity.ts"

/** The most characters of a title and of a variant's name, and of an address. */
const LONGEST = { title: 500, url: 2048 } as const

/** As the log has it. */
export const Offer = Schema.Struct({
  /** Of the product, without its variant. */
  title: Schema.String,
  /** The page of the product: http or https. All variants have the same. */
  url: Schema.String,
  /** Where the price is that of one variant alone. */
  variant: Schema.optionalKey(Schema.String)
})
export type Offer = typeof Offer.Type

/** One line of at most 500 characters. */
const lineOf = (text: string): string =>
  [
    ...text
      .toWellFormed()
      .replaceAll(/\p{Cc}+/gu, " ")
      .trim()
  ]
    .slice(0, LONGEST.title)
    .join("")
    .trim()

/** The offer as the log gets it: texts as lines, cut where they are too long. Undefined without a title, or without an address of the web. */
export const offerOf = (given: Offer): Offer | undefined => {
  const url = URL.parse(given.url)
  const [title, variant] = [lineOf(given.title), lineOf(given.variant ?? "")]
  const isAddress = (url?.protocol === "https:" || url?.protocol === "http:") && url.username === "" && url.password === ""
  if (!isAddress || url.href.length > LONGEST.url || title === "" || normalisedUrl(url.href) === undefined) return undefined
  return { title, url: url.href, ...(variant === "" ? {} : { variant }) }
}

/** Names the product of an offer: all offers of one page are of one product. */
export const productOf = ({ url }: Offer): string => identityOf({ url }) ?? url

/** The host of the page, without `www.`. */
export const shopOf = (url: string): string => new URL(url).hostname.replace(/^www\.(?=[^.]+\.)/u, "")

/** What the product is called with its variant. */
export const titleOf = (title: string, variant: string | null): string => (variant === null ? title : `${title} - ${variant}`)
