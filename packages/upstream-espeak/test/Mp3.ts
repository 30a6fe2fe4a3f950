/** MPEG-2 audio, layer III, one channel, as ISO 13818-3 and 11172-3 lay it out: frame by frame, down to where each one's sound lies. */

export interface Frame {
  readonly bitRate: number
  readonly sampleRate: number
  /** Bits of scale factors and Huffman codes: none in a frame without sound. */
  readonly soundBits: number
}

const BIT_RATES = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]
const SAMPLE_RATES = [22_050, 24_000, 16_000]
const HEADER_BYTES = 4
const SIDE_BYTES = 9

export const SAMPLES_PER_FRAME = 576

/**
 * Reads frames to the last byte. Throws where one is not followed at once by the next, is cut off, or takes its sound from bytes that
 * are not there or that another frame took: main data may lie in earlier frames.
 */
export const framesOf = (mp3: Uint8Array): ReadonlyArray<Frame> => {
  const view = new DataView(mp3.buffer, mp3.byteOffset, mp3.byteLength)
  const frames: Array<Frame> = []
  // Both in bytes of main data since the beginning
  let seen = 0
  let taken = 0
  for (let at = 0; at < mp3.length; ) {
    const header = view.getUint32(at)
    // Sync, MPEG-2, layer III
    if (header >>> 17 !== 0x7ff9) throw new Error(`no frame at byte ${at}`)
    const bitRate = (BIT_RATES[(header >>> 12) & 15] ?? 0) * 1_000
    const sampleRate = SAMPLE_RATES[(header >>> 10) & 3] ?? 0
    const isMono = ((header >>> 6) & 3) === 3
    if (bitRate === 0 || sampleRate === 0 || !isMono) throw new Error(`an impossible frame at byte ${at}`)
    const length = Math.floor((72 * bitRate) / sampleRate) + ((header >>> 9) & 1)
    if (at + length > mp3.length) throw new Error(`the frame at byte ${at} is cut off`)
    const crc = ((header >>> 16) & 1) === 0 ? 2 : 0

    const side = at + HEADER_BYTES + crc
    const begin = seen - view.getUint8(side)
    // After nine bits
    const soundBits = ((view.getUint8(side + 1) & 0x7f) << 5) | (view.getUint8(side + 2) >>> 3)
    seen += length - HEADER_BYTES - crc - SIDE_BYTES
    if (begin < taken || begin + soundBits / 8 > seen) throw new Error(`the frame at byte ${at} has its sound nowhere`)
    taken = begin + Math.ceil(soundBits / 8)

    frames.push({ bitRate, sampleRate, soundBits })
    at += length
  }
  return frames
}
