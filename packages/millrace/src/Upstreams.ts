/** The operations that the server comes with, and what really does them. */

import { Api } from "@millrace/http"
import { CardTypeBinDirectory, HarperGrammarChecker } from "@millrace/upstreams"
import { Layer } from "effect"

export const api = Api.make(Api.standard)

export const operations = Object.values(Api.standard).flatMap(({ operations }) => [...operations])

export interface UpstreamOptions {
  /** An operator's file of BIN ranges; without one only scheme and brand are known. */
  readonly binFile: string | undefined
}

export const layer = ({ binFile }: UpstreamOptions) =>
  Layer.mergeAll(HarperGrammarChecker.layer(), binFile === undefined ? CardTypeBinDirectory.layer : CardTypeBinDirectory.layerFile(binFile))
