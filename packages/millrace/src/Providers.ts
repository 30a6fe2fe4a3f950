/** Upstreams that need a provider: which of them, and where, by settings. Without one, an operation answers that it is not set up. */
import { CodeHost, DailyQuotas, Image, Leads, Pace, Speech, type Video } from "@millrace/core"
import type { StateStore } from "@millrace/event-sourcing"
import {
  Automatic1111ImageGenerator,
  ComfyUiImageGenerator,
  DnsClient,
  GitHubCodeHost,
  LibreTranslateTranslator,
  OpenAiImageGenerator,
  OpenAiSpeechSynthesizer,
  OsmMapSearch,
  PlacesMapSearch
} from "@millrace/upstreams"
import { Config, Effect, Layer, Option } from "effect"
import { CommandFailed, fail } from "./Failure.ts"
import { decoded } from "./ServerUrl.ts"
import * as Setting from "./Setting.ts"
import * as VideoProvider from "./VideoProvider.ts"

/** `openai:https://api.openai.com/v1`: the kind of provider, and its address. */
interface Provider<Kind extends string> {
  readonly kind: Kind
  readonly url: URL
}

const provider =
  <const Kind extends string>(kinds: ReadonlyArray<Kind>) =>
  (text: string): Provider<Kind> | undefined => {
    const kind = kinds.find((kind) => text.startsWith(`${kind}:`))
    const url = kind === undefined ? "" : text.slice(kind.length + 1)
    return kind === undefined || !/^https?:/u.test(url) || !URL.canParse(url) ? undefined : { kind, url: new URL(url) }
  }

const ESPEAK = "espeak"

const speechOf = (text: string) => (text === ESPEAK ? ESPEAK : provider(["openai"])(text))
const imagesOf = provider(["openai", "automatic1111", "comfyui"])
const OFF = "off"

const addressOf = (text: string) => (/^https?:/u.test(text) && URL.canParse(text) ? new URL(text) : undefined)
const codeHostOf = (text: string) => (text === OFF ? OFF : addressOf(text))
const translatorOf = addressOf

/** It is sent in a header. */
const contactOf = (text: string) => (/^[\x21-\x7e]{3,200}$/u.test(text) && !/[()]/u.test(text) ? text : undefined)

const PLACES = "places"
const mapSearchOf = (text: string) => provider([PLACES, "osm"])(text === PLACES ? `${PLACES}:https://places.googleapis.com` : text)

const SPEECH = "espeak, or such as openai:https://api.openai.com/v1"
const IMAGES = "such as openai:https://api.openai.com/v1"
const MAP_SEARCH = "places, or such as osm:https://nominatim.openstreetmap.org"
const OVERPASS = "such as https://overpass-api.de/api"
const CONTACT = "an e-mail address or a page"
const CODE_HOST = "off, or such as https://api.github.com"
const TRANSLATE = "such as https://libretranslate.com"

export const flags = {
  speech: Setting.optional(
    "speech",
    "Speech provider: espeak, offline, of the package @millrace/upstream-espeak (GPL), or openai:URL, with MILLRACE_SPEECH_KEY",
    { metavar: "espeak|openai:url", parse: speechOf, expected: SPEECH, secret: true }
  ),
  images: Setting.optional(
    "images",
    "Image provider: openai:URL, with MILLRACE_IMAGES_KEY, automatic1111:URL, or comfyui:URL#CHECKPOINT, such as comfyui:http://localhost:8188#sd_xl_base_1.0.safetensors",
    { metavar: "provider:url", parse: imagesOf, expected: IMAGES, secret: true }
  ),
  translate: Setting.optional(
    "translate",
    "Address of a LibreTranslate server that translates prompts; MILLRACE_TRANSLATE_KEY if it needs a key",
    { metavar: "url", parse: translatorOf, expected: TRANSLATE, secret: true }
  ),
  codeHost: Setting.optional(
    "code-host",
    "Address of GitHub's API, of github.com when left out, or of an Enterprise Server; MILLRACE_CODE_HOST_TOKEN raises its limits",
    { metavar: "off|url", parse: codeHostOf, expected: CODE_HOST, secret: true }
  ),
  mapSearch: Setting.optional(
    "map-search",
    "Map service: places for the Places API (New), with MILLRACE_MAP_SEARCH_KEY, or osm:URL for a Nominatim server, with --map-search-contact",
    { metavar: "places|osm:url", parse: mapSearchOf, expected: MAP_SEARCH, secret: true }
  ),
  overpass: Setting.optional("overpass", "Address of an Overpass server that tells more of what the Nominatim server finds", {
    metavar: "url",
    parse: addressOf,
    expected: OVERPASS,
    secret: true
  }),
  mapSearchContact: Setting.optional("map-search-contact", "By what the operators of these servers reach you; it is sent to them", {
    metavar: "contact",
    parse: contactOf,
    expected: CONTACT
  }),
  ...VideoProvider.flags
}

export interface Choice extends VideoProvider.Choice {
  readonly speech: Option.Option<typeof ESPEAK | Provider<"openai">>
  readonly images: Option.Option<Provider<"openai" | "automatic1111" | "comfyui">>
  readonly translate: Option.Option<URL>
  readonly codeHost: Option.Option<typeof OFF | URL>
  readonly mapSearch: Option.Option<Provider<typeof PLACES | "osm">>
  readonly overpass: Option.Option<URL>
  readonly mapSearchContact: Option.Option<string>
}

/** The providers that a host of the library names, in the words of the command line. */
export const choiceOf = ({
  codeHost,
  dnsServers = [],
  images,
  mapSearch,
  mapSearchContact,
  overpass,
  speech,
  translate,
  video,
  youtubeQuota,
  youtubeUrl
}: Words): Effect.Effect<Choice, CommandFailed> => {
  const one = <A>(option: string, text: string | undefined, parse: (text: string) => A | undefined, expected: string) => {
    if (text === undefined) return Effect.succeed(Option.none<A>())
    const parsed = parse(text)
    return parsed === undefined
      ? fail(`the option providers.${option} is another text: give ${expected}`)
      : Effect.succeed(Option.some(parsed))
  }
  const wrong = dnsServers.find((server) => !DnsClient.isServer(server))
  if (wrong !== undefined) return fail(`the option providers.dnsServers has ${JSON.stringify(wrong)}: give IP addresses of name servers`)
  return Effect.all({
    speech: one("speech", speech, speechOf, SPEECH),
    images: one("images", images, imagesOf, IMAGES),
    translate: one("translate", translate, translatorOf, TRANSLATE),
    codeHost: one("codeHost", codeHost, codeHostOf, CODE_HOST),
    mapSearch: one("mapSearch", mapSearch, mapSearchOf, MAP_SEARCH),
    overpass: one("overpass", overpass, addressOf, OVERPASS),
    mapSearchContact: one("mapSearchContact", mapSearchContact, contactOf, CONTACT),
    video: one("video", video, VideoProvider.video.parse, VideoProvider.video.expected),
    youtubeUrl: one("youtubeUrl", youtubeUrl, VideoProvider.kinds.youtubeUrl.parse, VideoProvider.kinds.youtubeUrl.expected),
    youtubeQuota: Effect.succeed(Option.fromUndefinedOr(youtubeQuota))
  })
}

interface Words {
  readonly speech?: string
  readonly images?: string
  readonly translate?: string
  readonly codeHost?: string
  readonly mapSearch?: string
  readonly overpass?: string
  readonly mapSearchContact?: string
  readonly video?: string
  readonly youtubeUrl?: string
  readonly youtubeQuota?: number
  readonly dnsServers?: ReadonlyArray<string>
}

const byVariable = <A>(variable: string, parse: (text: string) => A | undefined, expected: string) =>
  Effect.flatMap(
    Config.String(variable).pipe(Config.option),
    Option.match({
      onNone: () => Effect.succeed(Option.none<A>()),
      onSome: (text) => {
        const parsed = parse(text)
        return parsed === undefined ? fail(`${variable} names no provider: give ${expected}`) : Effect.succeed(Option.some(parsed))
      }
    })
  )

/** The providers that the environment names, for commands without these flags. */
export const byEnvironment = Effect.all({
  speech: byVariable("MILLRACE_SPEECH", speechOf, SPEECH),
  images: byVariable("MILLRACE_IMAGES", imagesOf, IMAGES),
  translate: byVariable("MILLRACE_TRANSLATE", translatorOf, TRANSLATE),
  codeHost: byVariable("MILLRACE_CODE_HOST", codeHostOf, CODE_HOST),
  mapSearch: byVariable("MILLRACE_MAP_SEARCH", mapSearchOf, MAP_SEARCH),
  overpass: byVariable("MILLRACE_OVERPASS", addressOf, OVERPASS),
  mapSearchContact: byVariable("MILLRACE_MAP_SEARCH_CONTACT", contactOf, CONTACT),
  video: byVariable("MILLRACE_VIDEO", VideoProvider.video.parse, VideoProvider.video.expected),
  youtubeUrl: Effect.succeed(Option.none()),
  youtubeQuota: Effect.succeed(Option.none())
})

const keyOf = (variable: string) =>
  Effect.map(Config.Redacted(variable).pipe(Config.option), (key) => (Option.isNone(key) ? {} : { apiKey: key.value }))

const espeak = Effect.tryPromise({
  try: async () => (await import("@millrace/upstream-espeak")).EspeakSpeechSynthesizer.layer(),
  catch: () => new CommandFailed("espeak is not installed: npm install @millrace/upstream-espeak")
})

const speech = Effect.fnUntraced(function* (choice: Choice["speech"]) {
  if (Option.isNone(choice)) return Speech.SpeechSynthesizer.unconfigured
  if (choice.value === ESPEAK) return yield* espeak
  return OpenAiSpeechSynthesizer.layer({ baseUrl: choice.value.url, ...(yield* keyOf("MILLRACE_SPEECH_KEY")) })
})

const images = Effect.fnUntraced(function* (choice: Choice["images"]) {
  if (Option.isNone(choice)) return Image.ImageGenerator.unconfigured
  const { kind, url } = choice.value
  switch (kind) {
    case "openai":
      return OpenAiImageGenerator.layer({ baseUrl: url, ...(yield* keyOf("MILLRACE_IMAGES_KEY")) })
    case "automatic1111":
      return Automatic1111ImageGenerator.layer({ baseUrl: url })
    case "comfyui": {
      const checkpoint = decoded(url.hash.slice(1))
      if (checkpoint === undefined || checkpoint === "") return yield* fail("comfyui needs a checkpoint: comfyui:URL#CHECKPOINT")
      return ComfyUiImageGenerator.layer({ baseUrl: new URL(url.origin + url.pathname), workflow: { checkpoint } })
    }
  }
})

const translator = Effect.fnUntraced(function* (choice: Choice["translate"]) {
  if (Option.isNone(choice)) return Image.Translator.unconfigured
  return LibreTranslateTranslator.layer({ baseUrl: choice.value, ...(yield* keyOf("MILLRACE_TRANSLATE_KEY")) })
})

const codeHost = Effect.fnUntraced(function* (choice: Choice["codeHost"]) {
  const baseUrl = Option.getOrUndefined(choice)
  if (baseUrl === OFF) return CodeHost.CodeHost.unconfigured
  const token = Option.getOrUndefined(yield* Config.Redacted("MILLRACE_CODE_HOST_TOKEN").pipe(Config.option))
  return GitHubCodeHost.layer({
    ...(baseUrl === undefined ? {} : { baseUrl }),
    ...(token === undefined ? {} : { token })
  })
})

const mapSearch = Effect.fnUntraced(function* ({ mapSearch: choice, mapSearchContact, overpass }: Choice) {
  const isOsm = Option.isSome(choice) && choice.value.kind !== PLACES
  if (Option.isSome(overpass) && !isOsm)
    return yield* fail("an Overpass server only tells more of what a Nominatim server finds: set MILLRACE_MAP_SEARCH to osm:URL")
  if (Option.isNone(choice)) return Leads.MapSearch.unconfigured
  const { kind, url } = choice.value
  if (kind === PLACES) {
    const { apiKey } = yield* keyOf("MILLRACE_MAP_SEARCH_KEY")
    if (apiKey === undefined) return yield* fail("the Places API needs a key: MILLRACE_MAP_SEARCH_KEY")
    return PlacesMapSearch.layer({ apiKey, baseUrl: url })
  }
  if (Option.isNone(mapSearchContact))
    return yield* fail("a Nominatim server wants to know who asks: --map-search-contact or MILLRACE_MAP_SEARCH_CONTACT")
  const more = Option.match(overpass, { onNone: () => ({}), onSome: (overpass) => ({ overpass }) })
  return OsmMapSearch.layer({ nominatim: url, contact: mapSearchContact.value, ...more }).pipe(Layer.provide(Pace.layer))
})

type Provided =
  | CodeHost.CodeHost
  | DailyQuotas
  | Image.ImageGenerator
  | Image.Translator
  | Leads.MapSearch
  | Speech.SpeechSynthesizer
  | Video.VideoSite

/** The state store keeps the pace of requests that some providers ask for. */
export const layer = (choice: Choice): Layer.Layer<Provided, CommandFailed | Config.ConfigError, StateStore.StateStore> =>
  Layer.mergeAll(
    Layer.unwrap(speech(choice.speech)),
    Layer.unwrap(images(choice.images)),
    Layer.unwrap(translator(choice.translate)),
    Layer.unwrap(codeHost(choice.codeHost)),
    Layer.unwrap(mapSearch(choice)),
    Layer.unwrap(VideoProvider.layer(choice))
  ).pipe(Layer.provideMerge(DailyQuotas.layer))
