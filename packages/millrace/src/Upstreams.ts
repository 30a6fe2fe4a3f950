/** The operations that the server comes with, and what really does them. */

import { Api } from "@millrace/http"
import {
  BundledTopicLibrary,
  CardTypeBinDirectory,
  DnsClient,
  DnsEmailValidator,
  HarperGrammarChecker,
  SharpImageInspector,
  UrlImageDownloader
} from "@millrace/upstreams"
import { Layer } from "effect"
import * as Providers from "./Providers.ts"

export const api = Api.make(Api.standard)

export interface UpstreamOptions {
  /** An operator's file of BIN ranges; without one only scheme and brand are known. */
  readonly binFile: string | undefined
  /** Name servers to ask, such as `9.9.9.9` or `127.0.0.1:5353`; those of the system when there is none. */
  readonly dnsServers: ReadonlyArray<string> | undefined
  readonly providers: Providers.Choice
}

export const layer = ({ binFile, dnsServers, providers }: UpstreamOptions) =>
  Layer.mergeAll(
    Providers.layer(providers),
    UrlImageDownloader.layer(),
    SharpImageInspector.layer(),
    HarperGrammarChecker.layer(),
    binFile === undefined ? CardTypeBinDirectory.layer : CardTypeBinDirectory.layerFile(binFile),
    BundledTopicLibrary.layer,
    DnsEmailValidator.layer.pipe(Layer.provideMerge(DnsClient.layer(dnsServers === undefined ? {} : { servers: dnsServers })))
  )
