/** What every blob store keeps to, kept to by that on S3: under a prefix, beside which there may be anything. */
import { blobStoreSuite } from "@millrace/testing"
import { S3BlobStore } from "@millrace/upstreams"
import { Effect, Layer, Redacted } from "effect"
import { describe, test } from "vitest"
import * as Bucket from "./Bucket.ts"

const MB = 1024 * 1024

const layer = () =>
  Layer.unwrap(
    Effect.map(Bucket.open(), ({ url }) =>
      S3BlobStore.layer({
        bucketUrl: url,
        region: "us-east-1",
        accessKeyId: "S3RVER",
        secretAccessKey: Redacted.make("S3RVER"),
        prefix: "mill/blobs/",
        partSize: 5 * MB
      })
    )
  )

blobStoreSuite("S3", layer, { describe, it: test }, { bytes: 40 * MB, held: 24 * MB })
