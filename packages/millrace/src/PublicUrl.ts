/** The address under which people reach this server: the setting, or where it listens. It is never taken from a request. */
import { PublicAddress } from "@millrace/core"
import { Context, Deferred, Effect, Layer, Option } from "effect"
import * as Setting from "./Setting.ts"

const parse = (text: string): URL | undefined => {
  const url = URL.parse(text)
  const isAddress = url !== null && /^https?:$/u.test(url.protocol) && url.search === "" && url.hash === ""
  return isAddress && url.username === "" && url.password === "" ? url : undefined
}

export const kind: Setting.Kind<URL> = {
  metavar: "url",
  parse,
  expected: "an address such as https://api.example.com, without a query",
  secret: true
}

/** Whether it names this machine, whose pages browsers trust over plain HTTP. */
export const isLoopback = ({ hostname }: URL): boolean => /^(?:(?:.+\.)?localhost|127(?:\.\d+){3}|\[::1\])$/u.test(hostname)

export const flags = {
  publicUrl: Setting.optional(
    "public-url",
    "Address under which people and providers reach this server; where it listens when left out. Mailed links lead there",
    kind
  )
}

export interface Settings {
  readonly publicUrl: Option.Option<URL>
}

export class PublicUrl extends Context.Service<
  PublicUrl,
  {
    /** Waits until the server listens, where no setting says the address. */
    readonly url: Effect.Effect<URL>
    readonly listening: (url: string) => Effect.Effect<void>
  }
>()("millrace/PublicUrl") {
  static readonly layer = ({ publicUrl }: Settings): Layer.Layer<PublicUrl> =>
    Layer.effect(
      PublicUrl,
      Effect.map(Deferred.make<URL>(), (known) => ({
        url: Option.match(publicUrl, { onNone: () => Deferred.await(known), onSome: Effect.succeed }),
        listening: (url) => Effect.asVoid(Deferred.succeed(known, new URL(url)))
      }))
    )
}

/** Where the links of mails lead that the host sends by itself. */
export const address: Layer.Layer<PublicAddress, never, PublicUrl> = Layer.effect(
  PublicAddress,
  Effect.map(PublicUrl, ({ url }) => ({ url, service: "Millrace" }))
)
