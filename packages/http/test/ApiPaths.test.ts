/** Core names paths relative to the API; http puts its prefix before them, in answers and in the documentation. */
import { ApiPath, ImageJobs, SpeechJobs } from "@millrace/core"
import { Schema } from "effect"
import { describe, expect, test } from "vitest"
import * as ApiPaths from "../src/ApiPaths.ts"
import { PREFIX } from "../src/Endpoint.ts"

const report = {
  success: Schema.Struct({
    page: ApiPath.mark(Schema.String),
    next: ApiPath.mark(Schema.NullOr(Schema.String)),
    link: Schema.String,
    inner: Schema.Struct({ page: Schema.String })
  })
}

describe("the prefix of the API", () => {
  test("is put before marked fields only", () => {
    const data = '{"page":"/reports/1","next":null,"link":"/elsewhere","inner":{"page":"/reports/2"}}'
    expect(ApiPaths.of(report).inText(data)).toBe(data.replace("/reports/1", `${PREFIX}/reports/1`))
    expect(ApiPaths.of(report).inValue({ page: "/a", next: "/b" })).toEqual({ page: `${PREFIX}/a`, next: `${PREFIX}/b` })
  })

  test("leaves data without marked fields unchanged, byte for byte", () => {
    const { inText } = ApiPaths.of({ success: Schema.Struct({ page: Schema.String }) })
    expect(inText('{"page": "/a",  "n": 1.0}')).toBe('{"page": "/a",  "n": 1.0}')
  })

  test.each([ImageJobs.read, SpeechJobs.read])("is not part of the download path that $key returns", (operation) => {
    const { data } = operation.example ?? {}
    expect(data?.download_url).toBe(`${operation.route.path.replace(":job", data?.job_id ?? "")}/artifact`)
    expect(ApiPaths.of(operation).inValue(data)).toEqual({ ...data, download_url: `${PREFIX}${data?.download_url}` })
  })
})
