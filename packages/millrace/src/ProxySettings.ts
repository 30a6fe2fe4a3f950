/** The settings of a proxy node, and the layer that follows from them. */
import { readFileSync } from "node:fs"
import { isIP } from "node:net"
import type { ProxyNode, ProxyNodes, ProxySessions } from "@millrace/core"
import type { Options, UpstreamProxy, UpstreamSource } from "@millrace/upstreams/proxy"
import { Context, Effect, Layer, Option } from "effect"
import { CommandFailed, codeOf, fail } from "./Failure.ts"
import * as Setting from "./Setting.ts"
import * as SettingNames from "./SettingNames.ts"

interface Files {
  readonly certificate: string
  readonly key: string
}

const filesOf = (text: string): Files | undefined => {
  const [certificate, key, ...rest] = text.split(",").map((file) => file.trim())
  return certificate === undefined || certificate === "" || key === undefined || key === "" || rest.length > 0
    ? undefined
    : { certificate, key }
}

export const country: Setting.Kind<string> = {
  metavar: "code",
  parse: (text) => (/^[A-Za-z]{2}$/u.test(text) ? text.toUpperCase() : undefined),
  expected: "two letters such as DE"
}

export const region: Setting.Kind<string> = {
  metavar: "name",
  parse: (text) => (text === "" || text.length > 50 ? undefined : text),
  expected: "at most 50 characters"
}

export const exits = {
  metavar: "addresses",
  parse: Setting.list((text) => isIP(text) > 0),
  expected: "IP addresses of this machine, separated by commas"
}

export const flags = {
  proxy: Setting.optional("proxy", "Where to serve an HTTP proxy for proxy sessions; none when left out", Setting.hostAndPort),
  socks: Setting.optional("socks", "Where to serve a SOCKS 5 proxy for proxy sessions; none when left out", Setting.hostAndPort),
  proxyTls: Setting.optional("proxy-tls", "Files with a certificate and its key: the HTTP proxy then speaks TLS too, on the same port", {
    metavar: "cert,key",
    parse: filesOf,
    expected: "two files in PEM, CERT,KEY"
  }),
  proxyCountry: Setting.optional("proxy-country", "The country of this proxy node, by ISO 3166-1", country),
  proxyRegion: Setting.optional("proxy-region", "The region of this proxy node within its country, such as Hesse", region),
  proxyHost: Setting.optional("proxy-host", "The name or address of this proxy node for clients; where it listens when left out", {
    metavar: "name",
    parse: Setting.text,
    expected: "a name or an address"
  }),
  proxyExits: Setting.optional(
    "proxy-exits",
    "Addresses of this machine that proxied connections leave from, separated by commas; the system chooses when left out",
    exits
  ),
  proxyUpstreams: Setting.optional(
    "proxy-upstreams",
    "A file with other proxies to connect through, one in a line: URL country=CODE, and region=NAME and exit=ADDRESS where they are known",
    Setting.file
  )
}

export interface Settings {
  readonly proxy: Option.Option<Setting.Listening>
  readonly socks: Option.Option<Setting.Listening>
  readonly proxyTls: Option.Option<Files>
  readonly proxyCountry: Option.Option<string>
  readonly proxyRegion: Option.Option<string>
  readonly proxyHost: Option.Option<string>
  readonly proxyExits: Option.Option<ReadonlyArray<string>>
  readonly proxyUpstreams: Option.Option<string>
}

const UPSTREAM = /^(?<url>\S+)\s+country=(?<country>[A-Za-z]{2})(?:\s+region=(?<region>.{1,50}?))?(?:\s+exit=(?<exit>\S+))?$/u
const SCHEME = /^(?:https?|socks5h?):$/u

/** A line of the file of upstreams; undefined if it is not understood. */
export const upstreamOf = (line: string): UpstreamProxy | undefined => {
  const { country, exit, region, url: text } = UPSTREAM.exec(line)?.groups ?? {}
  const url = text === undefined ? null : URL.parse(text)
  if (url === null || country === undefined || !SCHEME.test(url.protocol) || url.hostname === "") return undefined
  if (exit !== undefined && isIP(exit) === 0) return undefined
  return { url, country: country.toUpperCase(), ...(region === undefined ? {} : { region }), ...(exit === undefined ? {} : { exit }) }
}

/** Lines that are empty or begin with `#` are left out. A line that is not understood is told by its number: it has a password. */
const readUpstreams = (file: string): Effect.Effect<ReadonlyArray<UpstreamProxy>, CommandFailed> =>
  Effect.gen(function* () {
    const { proxyUpstreams } = yield* SettingNames.Current
    const text = yield* Effect.try({
      try: () => readFileSync(file, "utf8"),
      // Not its message, which has what was given for a path: it may be a proxy with its password
      catch: (error) => new CommandFailed(`the file of ${proxyUpstreams} cannot be read: ${codeOf(error)}`)
    })
    const upstreams: Array<UpstreamProxy> = []
    for (const [i, line] of text.split("\n").entries()) {
      if (/^\s*(?:#|$)/u.test(line)) continue
      const upstream = upstreamOf(line.trim())
      if (upstream === undefined)
        return yield* fail(
          `line ${i + 1} of ${file} is no upstream: give http://user:password@host:port country=DE, with the scheme http, https, socks5 or socks5h`
        )
      upstreams.push(upstream)
    }
    return upstreams
  })

/** A file of upstreams, which is read again when it changes. */
const upstreamsIn = (file: string, names: SettingNames.Names): UpstreamSource => ({
  read: Effect.provideService(readUpstreams(file), SettingNames.Current, names)
})

/** Every address: no client can connect to it. */
export const isAnywhere = (host: string): boolean => /^(?:0\.0\.0\.0|[0:]+)$/u.test(host)

const optionsOf = Effect.fnUntraced(function* (settings: Settings) {
  const { proxy, proxyCountry, proxyExits, proxyHost, proxyRegion, proxyTls, proxyUpstreams, socks } = settings
  const names = yield* SettingNames.Current
  if (Option.isNone(proxyCountry) && Option.isNone(proxyUpstreams))
    return yield* fail(`a proxy needs ${names.proxyCountry}, which says where its connections leave from, or ${names.proxyUpstreams}`)
  const listens = Option.orElse(proxy, () => socks)
  if (Option.isNone(proxyHost) && Option.exists(listens, ({ host }) => isAnywhere(host)))
    return yield* fail(`a proxy that listens on every address needs ${names.proxyHost}, the name or address that clients connect to`)
  const options: Options = {
    ...(Option.isSome(proxyCountry) ? { country: proxyCountry.value } : {}),
    ...(Option.isSome(proxyUpstreams) ? { upstreams: upstreamsIn(proxyUpstreams.value, names) } : {}),
    ...(Option.isSome(proxy) ? { http: proxy.value } : {}),
    ...(Option.isSome(socks) ? { socks: socks.value } : {}),
    ...(Option.isSome(proxyTls) ? { certificate: proxyTls.value } : {}),
    ...(Option.isSome(proxyRegion) ? { region: proxyRegion.value } : {}),
    ...(Option.isSome(proxyHost) ? { publicHost: proxyHost.value } : {}),
    ...(Option.isSome(proxyExits) ? { exits: proxyExits.value } : {})
  }
  return options
})

/** A node with the places that its connections leave from. */
export interface ServedNode extends ProxyNode {
  readonly places: ReadonlyArray<ProxyNode>
  /** Why the file of upstreams, as it is now, is not used. */
  readonly trouble: () => string | undefined
}

/** The node that this process serves. */
export class Serving extends Context.Service<Serving, ServedNode>()("millrace/ProxySettings/Serving") {}

/**
 * Why the file of upstreams, as it is now, is not used: the node says it, and `/ready` asks. It stands between the two, which start and stop
 * beside each other.
 */
export class Trouble extends Context.Service<Trouble, { current: ServedNode["trouble"] }>()("millrace/ProxySettings/Trouble") {
  static readonly layer: Layer.Layer<Trouble> = Layer.sync(Trouble, () => ({ current: () => undefined }))
}

/** Whether a proxy is to be served. */
export const isOn = ({ proxy, socks }: Settings): boolean => Option.isSome(proxy) || Option.isSome(socks)

/** Serves a node. What that needs is loaded here: most hosts have none, and start faster without it. */
export const serving = (settings: Settings): Layer.Layer<Serving, unknown, ProxySessions | ProxyNodes> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const options = yield* optionsOf(settings)
      const { ProxyServer } = yield* Effect.promise(() => import("@millrace/upstreams/proxy"))
      const node = Effect.tap(ProxyServer, ({ trouble }) =>
        Effect.map(Effect.serviceOption(Trouble), (told) => {
          if (Option.isSome(told)) told.value.current = trouble
        })
      )
      return Layer.effect(Serving, node).pipe(Layer.provide(ProxyServer.layer(options)))
    })
  )

/** Where a node listens, for an announcement. */
export const announced = ({ endpoints, host, places }: ServedNode): string =>
  `${endpoints.map(({ port, protocol }) => `${protocol}://${host.includes(":") ? `[${host}]` : host}:${port}`).join(", ")} (${places.map(({ country }) => country).join(", ")})`
