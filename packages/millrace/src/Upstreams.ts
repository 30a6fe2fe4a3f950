/** The operations of the server, and the upstreams that do their work. */
import type {
  Bin,
  BlobStore,
  CodeHost,
  Dns,
  Email,
  Grammar,
  Image,
  Inboxes,
  Leads,
  MailReceiver,
  Selectors,
  SmsReceiver,
  Speech,
  StoreCatalog,
  Topics,
  Video
} from "@millrace/core"
import { Api } from "@millrace/http"
import {
  BundledSelectorLibrary,
  BundledTopicLibrary,
  CardTypeBinDirectory,
  DnsClient,
  DnsEmailValidator,
  HarperGrammarChecker,
  ProductsJsonCatalogs,
  SharpImageInspector,
  UrlImageDownloader
} from "@millrace/upstreams"
import { Layer } from "effect"
import * as MailSettings from "./MailSettings.ts"
import * as Providers from "./Providers.ts"
import type { Stores } from "./StoreUrl.ts"

export const api: Api.Api<Api.Standard> = Api.make(Api.standard)

export interface UpstreamOptions {
  /** A file of BIN ranges. Without one, a lookup tells only scheme and brand. */
  readonly binFile: string | undefined
  /** Name servers, such as `9.9.9.9` or `127.0.0.1:5353`; the system's by default. */
  readonly dnsServers: ReadonlyArray<string> | undefined
  readonly providers: Providers.Choice
  /** None comes by default. */
  readonly mail?: MailSettings.Settings
}

/** The thread of the grammar checker takes some 350 MB. After this time without a text it ends; the next text starts it again, in a second. */
const GRAMMAR_IDLE = "5 minutes"

type Upstreams =
  | Bin.BinDirectory
  | CodeHost.CodeHost
  | Dns.DnsResolver
  | Email.EmailValidator
  | Grammar.GrammarChecker
  | Image.ImageDownloader
  | Image.ImageGenerator
  | Image.ImageInspector
  | Image.Translator
  | Inboxes
  | Leads.MapSearch
  | MailReceiver
  | Selectors.SelectorLibrary
  | SmsReceiver
  | Speech.SpeechSynthesizer
  | StoreCatalog.StoreCatalogs
  | Topics.TopicLibrary
  | Video.VideoSite

/** `sms`: what receives text messages. An operation whose upstream is missing here does not compile where it is served. */
export const layer = <Needs>(
  { binFile, dnsServers, mail = MailSettings.NONE, providers }: UpstreamOptions,
  sms: Layer.Layer<SmsReceiver, never, Needs>
): Layer.Layer<Upstreams, unknown, BlobStore.BlobStore | Stores | Needs> => {
  const resolver = DnsClient.layer(dnsServers === undefined ? {} : { servers: dnsServers })
  return Layer.mergeAll(
    sms,
    Providers.layer(providers),
    UrlImageDownloader.layer(),
    SharpImageInspector.layer(),
    HarperGrammarChecker.layer({ idleLimit: GRAMMAR_IDLE }),
    binFile === undefined ? CardTypeBinDirectory.layer : CardTypeBinDirectory.layerFile(binFile),
    BundledSelectorLibrary.layer,
    BundledTopicLibrary.layer,
    ProductsJsonCatalogs.layer(),
    DnsEmailValidator.layer.pipe(Layer.provideMerge(resolver)),
    MailSettings.layer(mail).pipe(Layer.provide(resolver))
  )
}
