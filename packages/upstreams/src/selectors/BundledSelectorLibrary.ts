/** `SelectorLibrary` in this process and offline: the shops of `shops.json`. */
import { Selectors } from "@millrace/core"
import { Effect, Layer } from "effect"
import shops from "./shops.json" with { type: "json" }

export interface Shop {
  readonly name: string
  /** In lower case. Hosts below them belong to the shop too. */
  readonly domains: ReadonlyArray<string>
  /** CSS, the best first. */
  readonly selectors: Readonly<Record<Selectors.Name, ReadonlyArray<string>>>
}

export const SHOPS: ReadonlyArray<Shop> = shops

const byDomain: ReadonlyMap<string, Shop> = new Map(SHOPS.flatMap((shop) => shop.domains.map((domain) => [domain, shop])))

/** The shop of the host, or of the nearest domain above it. */
export const shopAt = (host: string): Shop | undefined => {
  const labels = host.replace(/\.$/u, "").split(".")
  for (let i = 0; i < labels.length - 1; i++) {
    const shop = byDomain.get(labels.slice(i).join("."))
    if (shop !== undefined) return shop
  }
  return undefined
}

export const layer: Layer.Layer<Selectors.SelectorLibrary> = Layer.succeed(Selectors.SelectorLibrary, {
  find: (url, name) => Effect.sync(() => shopAt(URL.parse(url)?.hostname ?? "")?.selectors[name])
})
