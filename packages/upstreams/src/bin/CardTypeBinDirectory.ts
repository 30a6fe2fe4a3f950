/** `BinDirectory` in this process and offline: networks by their number ranges, and issuers from an optional file of the operator. */
import { Bin, NotFound } from "@millrace/core"
import { Effect, Layer } from "effect"
import { type BinEntry, type BinFile, type BinFileError, load } from "./BinFile.ts"
import { schemeOf } from "./Schemes.ts"

export { BinFileError } from "./BinFile.ts"

const UNLISTED: BinEntry = { scheme: null, type: null, brand: null, country: null, bank: null }

const directory = (fileEntry: BinFile): (typeof Bin.BinDirectory)["Service"] => ({
  lookup: (bin) => {
    const entry = fileEntry(bin) ?? UNLISTED
    const network = schemeOf(bin)
    const scheme = entry.scheme ?? network?.scheme
    if (scheme === undefined) return Effect.fail(new NotFound({ resource: "bin" }))
    const brand = entry.brand ?? (scheme === network?.scheme ? network.brand : null)
    return Effect.succeed({ bin, scheme, type: entry.type, brand, country: entry.country, bank: entry.bank })
  }
})

/** The record from ranges: scheme and brand only. Type, country and bank are null. */
export const layer: Layer.Layer<Bin.BinDirectory> = Layer.succeed(
  Bin.BinDirectory,
  directory(() => undefined)
)

/**
 * With a CSV file (UTF-8; a header of bin, scheme, type, brand, country, bank; bin is a prefix of one to eight digits, country an ISO
 * 3166-1 alpha-2 code), read once. The entry of the longest matching prefix is used; if its scheme is empty, the ranges give it.
 */
export const layerFile = (path: string): Layer.Layer<Bin.BinDirectory, BinFileError> =>
  Layer.effect(Bin.BinDirectory, Effect.map(load(path), directory))
