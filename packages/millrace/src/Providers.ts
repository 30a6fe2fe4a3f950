/** Upstreams that need a provider: which of them, and where, by settings. Without one, an operation answers that it is not set up. */
import { DailyQuotas, Image, Speech, Video } from "@millrace/core"
import type { StateStore } from "@millrace/event-sourcing"
import {
  Automatic1111ImageGenerator,
  ComfyUiImageGenerator,
  DnsClient,
  LibreTranslateTranslator,
  OpenAiImageGenerator,
  OpenAiSpeechSynthesizer,
  YouTubeVideoSite
} from "@millrace/upstreams"
import { Config, Effect, Layer, Option } from "effect"
import { CommandFailed, fail } from "./Failure.ts"
import * as Setting from "./Setting.ts"

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
const translatorOf = (text: string) => (/^https?:/u.test(text) && URL.canParse(text) ? new URL(text) : undefined)

const YOUTUBE = "youtube"
const videoOf = (text: string) => (text === YOUTUBE ? YOUTUBE : undefined)

const SPEECH = "espeak, or such as openai:https://api.openai.com/v1"
const IMAGES = "such as openai:https://api.openai.com/v1"
const VIDEO = "youtube"
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
  video: Setting.optional(
    "video",
    "Provider of videos: youtube, the YouTube Data API, with MILLRACE_YOUTUBE_KEY; MILLRACE_YOUTUBE_QUOTA says how many units a day it has, 10000 when left out, and MILLRACE_YOUTUBE_URL where it is",
    { metavar: "youtube", parse: videoOf, expected: VIDEO }
  )
}

export interface Choice {
  readonly speech: Option.Option<typeof ESPEAK | Provider<"openai">>
  readonly images: Option.Option<Provider<"openai" | "automatic1111" | "comfyui">>
  readonly translate: Option.Option<URL>
  readonly video: Option.Option<typeof YOUTUBE>
}

/** The providers that a host of the library names, in the words of the command line. */
export const choiceOf = ({ dnsServers = [], images, speech, translate, video }: Words): Effect.Effect<Choice, CommandFailed> => {
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
    video: one("video", video, videoOf, VIDEO)
  })
}

interface Words {
  readonly speech?: string
  readonly images?: string
  readonly translate?: string
  readonly video?: string
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
  video: byVariable("MILLRACE_VIDEO", videoOf, VIDEO)
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

/** Undefined for a malformed text. */
const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

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

const YOUTUBE_URL = Config.String("MILLRACE_YOUTUBE_URL").pipe(Config.option)
const YOUTUBE_QUOTA = Config.Int("MILLRACE_YOUTUBE_QUOTA").pipe(Config.option)

const video = Effect.fnUntraced(function* (choice: Choice["video"]) {
  if (Option.isNone(choice)) return Video.VideoSite.unconfigured
  const { apiKey } = yield* keyOf("MILLRACE_YOUTUBE_KEY")
  if (apiKey === undefined) return yield* fail("youtube needs a key of the YouTube Data API: set MILLRACE_YOUTUBE_KEY")
  const url = Option.getOrUndefined(yield* YOUTUBE_URL)
  const baseUrl = url === undefined ? undefined : translatorOf(url)
  if (url !== undefined && baseUrl === undefined) return yield* fail("MILLRACE_YOUTUBE_URL is no http or https address")
  const dailyQuota = Option.getOrUndefined(yield* YOUTUBE_QUOTA)
  if (dailyQuota !== undefined && dailyQuota < 1) return yield* fail("MILLRACE_YOUTUBE_QUOTA must be the units of a day: at least 1")
  return YouTubeVideoSite.layer({ apiKey, ...(baseUrl && { baseUrl }), ...(dailyQuota === undefined ? {} : { dailyQuota }) })
})

type Providers = Image.ImageGenerator | Image.Translator | Speech.SpeechSynthesizer | Video.VideoSite

export const layer = (choice: Choice): Layer.Layer<Providers | DailyQuotas, unknown, StateStore.StateStore> =>
  Layer.mergeAll(
    Layer.unwrap(speech(choice.speech)),
    Layer.unwrap(images(choice.images)),
    Layer.unwrap(translator(choice.translate)),
    Layer.unwrap(video(choice.video))
  ).pipe(Layer.provideMerge(DailyQuotas.layer))
