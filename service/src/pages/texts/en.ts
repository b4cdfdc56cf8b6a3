/** Every sentence of the pages in English: the table that the other languages follow. `{name}` is filled in; a test compares the places. */
import { statesEn } from './states-en.ts'

const page = {
  skip: 'Skip to the result',
  home: 'Touchstone, home page',
  languages: 'Language',
  testnet: 'Test network, contracts not audited.',
  testnetMore: 'For evaluation: do not buy, sell or hand over goods on this result alone.',
  about: 'Touchstone shows what the blockchain says about a tagged product, at a block that anyone can check.',
  privacy: 'No cookies, no tracking, no third parties.',

  product: 'Product',
  productNote: 'Supplied by the maker, not checked.',
  productUnnamed: 'Product {token}',
  brand: 'Brand',
  model: 'Model',
  size: 'Size',
  origin: 'Origin',
  description: 'Description',
  picture: 'Picture',
  pictureLink: 'Open the maker’s picture at {host}',
  gtin: 'Product number (GTIN)',
  serial: 'Serial number',
  token: 'Token id',
  mismatchTitle: 'Product text withheld',
  mismatchText: 'The product text kept here does not match its fingerprint on the blockchain, so it is not shown.',
  noMetadata: 'No product text is available for this item.',

  history: 'History on the blockchain',
  historyMissing: 'The history cannot be shown at the moment.',
  block: 'Block',
  blockHash: 'Block hash',
  transaction: 'Transaction',

  check: 'Check it yourself',
  checkText:
    'You do not have to believe this page. The state was read from this contract at this block, and the same read gives the same answer to anyone.',
  contract: 'Contract',
  castCommand: 'With Foundry’s cast',
  verifyCommand: 'With the Touchstone command line',
  commandHint: 'Put the address of a provider that you trust in place of {place}.',
  verdictLink: 'The on-chain record as JSON, no key needed',
  copy: 'Copy',
  copied: 'Copied',
  recheck: 'Recheck in this browser',
  recheckText: 'Your browser asks a blockchain provider itself and compares every field.',
  recheckProvider: 'Provider (JSON-RPC address)',
  recheckHint: 'This page is allowed to ask {origin} only. For another provider, use a command above.',
  recheckButton: 'Recheck now',
  recheckRunning: 'Reading the blockchain …',
  recheckSame: 'Every field agrees with the blockchain at block {block}.',
  recheckChanged:
    'The record agrees with the blockchain at block {block}, but it has changed since this page was made.',
  recheckDiffers: 'This does not agree with the blockchain: {fields}. Do not rely on it.',
  recheckFailed: 'Nothing was checked: the provider or this service did not answer.',
  owner: 'Test an owner',
  ownerText: 'The address is compared inside your browser with the commitment on the blockchain. It is sent nowhere.',
  ownerLabel: 'Wallet address',
  ownerButton: 'Test',
  ownerYes: 'Yes, this address holds the item.',
  ownerNo: 'No, this address does not hold the item.',
  ownerInvalid: 'An address is 0x and 40 hex digits.',

  ownership: 'Ownership',
  ownerClaimed: 'An owner has claimed this item. Who it is stays private here.',
  ownerUnclaimed: 'No one has claimed this item yet.',
  ownerClosed: 'The record is closed, so the item has no owner any more.',
  claimHow: 'How to claim it',
  claimText:
    'Tap the item in the app of its brand and confirm there. The blockchain accepts a claim only with a fresh tap and your own consent. You need no account here.',
  transferHow: 'How to pass it on',
  transferText:
    'You start the transfer, and the new owner accepts it. Until then the item stays yours; an offer ends after 72 hours.',
  lossHow: 'Lost or stolen?',
  lossText:
    'Report it through the app of its brand or to the seller. From then on everyone who taps or looks up the item sees the warning.',

  share: 'Keep and share',
  shareText: 'This link leaves out the tap: it opens the on-chain record, never a proof.',
  qrLabel: 'QR code of the link {url}',
  copyLink: 'Copy link',
  shareButton: 'Share',
  print: 'Print',
  download: 'Download passport',
  passport: 'The digital product passport is part of this page as JSON-LD data.',
  unsigned: 'It is unsigned (version 1): no issuer vouches for it with a signature yet.',
  printed: 'State at block {block}, {time}',

  tapHow: 'How to tap',
  tapWhere: 'The chip is usually behind a label, a patch or the logo.',
  tapAndroid: 'Switch NFC on, unlock the phone and hold the middle of its back to the chip.',
  tapIphone: 'Unlock the phone, hold its top edge to the chip and open the notification. iPhone XS or newer.',

  search: 'Look up an item',
  searchToken: 'By token id',
  searchItem: 'By product number',
  searchTokenHint: 'A whole number, such as 42',
  searchGtinHint: '8, 12, 13 or 14 digits, below the bar code',
  searchSerialHint: 'As printed, upper and lower case matter',
  searchButton: 'Look up',
  badToken: 'A token id is a whole number, such as 42.',
  badGtin: 'This is not a product number. Compare every digit with the bar code.',
  badSerial: 'A serial number has 1 to 20 letters, digits and common signs, without spaces.',

  homeTitle: 'Is this product the one it says it is?',
  homeLead: 'Hold your phone to the chip in the item. The page that opens tells you in one sentence.',
  homeStepTap: 'Tap',
  homeStepTapText: 'The chip makes a new code at every tap, and each code works once.',
  homeStepRead: 'Read',
  homeStepReadText: 'The page shows whether the chip is genuine and what the blockchain says about the item.',
  homeStepCheck: 'Check',
  homeStepCheckText: 'Every answer names its block, so that anyone can repeat it without us.',
  examples: 'Examples',
  examplesText: 'On-chain records of demonstration products.',

  classTitle: 'A kind of product, not one item',
  classText:
    'This number stands for every item of its kind. Only the chip in an item shows whether that item is genuine.',
  classSerial: 'Look up one item of this kind',
} as const

export const en = { ...page, ...statesEn } as const

/** The places in a translation are the same as in English; a test holds that. */
export type Texts = Readonly<Record<keyof typeof en, string>>
