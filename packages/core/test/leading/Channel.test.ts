import type { Socket } from "node:net"
import { Duplex } from "node:stream"
import fc from "fast-check"
import { expect, test } from "vitest"
import { Channel } from "../../src/leading/Channel.ts"
import type { Message } from "../../src/leading/Message.ts"

/** A socket whose bytes a test reads and writes. */
class Wire extends Duplex {
  readonly written: Array<Buffer> = []
  setNoDelay(): void {}
  override _read(): void {}
  override _write(bytes: Buffer, _: BufferEncoding, done: () => void): void {
    this.written.push(bytes)
    done()
  }
}

const channelOn = (heard: Array<Message>, onClose = () => {}) => {
  const wire = new Wire()
  const channel = new Channel(wire as Duplex as Socket, { onMessage: (message) => heard.push(message), onClose })
  return { wire, channel }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

test("messages arrive as they were sent, however the bytes are cut", async () => {
  const message = fc.tuple(fc.constant("ended" as const), fc.nat(), fc.record({ error: fc.jsonValue() }))
  const property = fc.asyncProperty(
    fc.array(message, { minLength: 1 }),
    fc.infiniteStream(fc.integer({ min: 1, max: 40 })),
    async (all, cuts) => {
      const sending = channelOn([])
      const heard: Array<Message> = []
      const receiving = channelOn(heard)
      for (const one of all) {
        sending.channel.say(one)
        if (one[1] % 2 === 0) await turn()
      }
      await turn()
      let bytes = Buffer.concat(sending.wire.written)
      while (bytes.length > 0) {
        const length = cuts.next().value
        receiving.wire.push(bytes.subarray(0, length))
        bytes = bytes.subarray(length)
      }
      await turn()
      await turn()
      expect(heard).toEqual(JSON.parse(JSON.stringify(all)))
      sending.channel.close()
      receiving.channel.close()
    }
  )
  await fc.assert(property, { numRuns: 60 })
})

test("messages of one turn share a frame", async () => {
  const { channel, wire } = channelOn([])
  for (let id = 0; id < 100; id++) channel.say(["cancel", id])
  await turn()
  expect(wire.written).toHaveLength(1)
  channel.close()
})

test.each([
  ["is too long", Buffer.from([0xff, 0xff, 0xff, 0xff])],
  ["is no JSON", Buffer.from([0, 0, 0, 1, 0x5b])]
])("a frame that %s closes the channel", async (_, bytes) => {
  const heard: Array<Message> = []
  const closed = new Promise<void>((resolve) => {
    channelOn(heard, resolve).wire.push(bytes)
  })
  await closed
  expect(heard).toEqual([])
})

test("a message is sent only once its bytes are with the socket", async () => {
  const { channel } = channelOn([])
  let isSent = false
  channel.send('["alive"]', () => {
    isSent = true
  })
  channel.close()
  await turn()
  expect(isSent).toBe(false)
})
