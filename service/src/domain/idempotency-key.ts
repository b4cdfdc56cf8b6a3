/** Returns whether text can be the idempotency key of a caller: 1 to 100 printable characters of ASCII. */
export const isIdempotencyKey = (text: string): boolean => /^[\x21-\x7e]{1,100}$/.test(text)
