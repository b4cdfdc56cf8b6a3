/** Settings of wallet passes: the operator's certificates of Apple, and service account of Google. */
import { z } from 'zod'
import { file, optional, pattern } from './parsers.ts'
import { setting } from './setting.ts'

export const appleSettings = z.object({
  passType: setting(
    'APPLE_PASS_TYPE',
    optional(pattern(/^pass\.[A-Za-z0-9.-]{1,120}$/, 'a pass type identifier such as pass.com.example.verify')),
  ).describe(
    'Pass type identifier, for certificates as passes of Apple Wallet; empty, with the four below: there are none.',
  ),
  team: setting('APPLE_TEAM_ID', optional(pattern(/^[A-Z0-9]{10}$/, 'ten letters A-Z and digits'))).describe(
    'Team identifier of the operator at Apple.',
  ),
  certificate: setting('APPLE_PASS_CERTIFICATE', file).describe('PEM file of the certificate of APPLE_PASS_TYPE.'),
  keyFile: setting('APPLE_PASS_KEY_FILE', file).describe(
    'PEM file, closed to other users, of the private key of APPLE_PASS_CERTIFICATE.',
  ),
  intermediate: setting('APPLE_WWDR_CERTIFICATE', file).describe(
    'PEM file of the certificate of Apple (WWDR) that issued APPLE_PASS_CERTIFICATE.',
  ),
})

export const applePasswordSetting = setting('APPLE_PASS_KEY_PASSWORD_FILE', file).describe(
  'File, closed to other users, whose first line is the password of APPLE_PASS_KEY_FILE; empty: the key is not encrypted.',
)

export const googleSettings = z.object({
  issuerId: setting('GOOGLE_WALLET_ISSUER', optional(pattern(/^\d{1,20}$/, 'up to 20 digits'))).describe(
    'Issuer id of the operator, for certificates as passes of Google Wallet; empty, with the next: there are none.',
  ),
  accountFile: setting('GOOGLE_WALLET_ACCOUNT_FILE', file).describe(
    'JSON file, closed to other users, of the key of a service account that may issue passes.',
  ),
})
