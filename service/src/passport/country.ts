/** Country of production (UNTP `Country`): an exact ISO 3166-1 alpha-2 code or English name. Anything else is unspecified, never guessed. */

export type Country = { readonly countryCode: string; readonly countryName: string }

/** ISO 3166-1 reserves ZZ for private use; CLDR reads it as «unknown region». */
export const unspecifiedCountry: Country = { countryCode: 'ZZ', countryName: 'Unspecified' }

/** Returns the country that a supplier's `origin` names exactly; null when it names none. */
export function countryOf(origin: string): Country | null {
  return byCode.get(origin) ?? byName.get(origin) ?? null
}

/** ISO 3166-1 alpha-2 codes with English names; further English names of the same country after a slash. */
const table = `
AD Andorra|AE United Arab Emirates|AF Afghanistan|AG Antigua and Barbuda|AI Anguilla|AL Albania|AM Armenia|AO Angola|AQ Antarctica
AR Argentina|AS American Samoa|AT Austria|AU Australia|AW Aruba|AX Åland Islands|AZ Azerbaijan|BA Bosnia and Herzegovina|BB Barbados
BD Bangladesh|BE Belgium|BF Burkina Faso|BG Bulgaria|BH Bahrain|BI Burundi|BJ Benin|BL Saint Barthélemy|BM Bermuda
BN Brunei/Brunei Darussalam|BO Bolivia|BQ Bonaire, Sint Eustatius and Saba|BR Brazil|BS Bahamas|BT Bhutan|BV Bouvet Island|BW Botswana
BY Belarus|BZ Belize|CA Canada|CC Cocos (Keeling) Islands|CD Democratic Republic of the Congo|CF Central African Republic
CG Republic of the Congo/Congo|CH Switzerland|CI Côte d'Ivoire/Ivory Coast|CK Cook Islands|CL Chile|CM Cameroon|CN China|CO Colombia
CR Costa Rica|CU Cuba|CV Cabo Verde/Cape Verde|CW Curaçao|CX Christmas Island|CY Cyprus|CZ Czechia/Czech Republic|DE Germany|DJ Djibouti
DK Denmark|DM Dominica|DO Dominican Republic|DZ Algeria|EC Ecuador|EE Estonia|EG Egypt|EH Western Sahara|ER Eritrea|ES Spain|ET Ethiopia
FI Finland|FJ Fiji|FK Falkland Islands|FM Micronesia/Federated States of Micronesia|FO Faroe Islands|FR France|GA Gabon
GB United Kingdom/United Kingdom of Great Britain and Northern Ireland/Great Britain|GD Grenada|GE Georgia|GF French Guiana|GG Guernsey
GH Ghana|GI Gibraltar|GL Greenland|GM Gambia|GN Guinea|GP Guadeloupe|GQ Equatorial Guinea|GR Greece
GS South Georgia and the South Sandwich Islands|GT Guatemala|GU Guam|GW Guinea-Bissau|GY Guyana|HK Hong Kong
HM Heard Island and McDonald Islands|HN Honduras|HR Croatia|HT Haiti|HU Hungary|ID Indonesia|IE Ireland|IL Israel|IM Isle of Man|IN India
IO British Indian Ocean Territory|IQ Iraq|IR Iran|IS Iceland|IT Italy|JE Jersey|JM Jamaica|JO Jordan|JP Japan|KE Kenya|KG Kyrgyzstan
KH Cambodia|KI Kiribati|KM Comoros|KN Saint Kitts and Nevis|KP North Korea/Democratic People's Republic of Korea
KR South Korea/Republic of Korea|KW Kuwait|KY Cayman Islands|KZ Kazakhstan|LA Laos/Lao People's Democratic Republic|LB Lebanon
LC Saint Lucia|LI Liechtenstein|LK Sri Lanka|LR Liberia|LS Lesotho|LT Lithuania|LU Luxembourg|LV Latvia|LY Libya|MA Morocco|MC Monaco
MD Moldova/Republic of Moldova|ME Montenegro|MF Saint Martin (French part)|MG Madagascar|MH Marshall Islands|MK North Macedonia|ML Mali
MM Myanmar|MN Mongolia|MO Macao/Macau|MP Northern Mariana Islands|MQ Martinique|MR Mauritania|MS Montserrat|MT Malta|MU Mauritius
MV Maldives|MW Malawi|MX Mexico|MY Malaysia|MZ Mozambique|NA Namibia|NC New Caledonia|NE Niger|NF Norfolk Island|NG Nigeria|NI Nicaragua
NL Netherlands/Kingdom of the Netherlands|NO Norway|NP Nepal|NR Nauru|NU Niue|NZ New Zealand|OM Oman|PA Panama|PE Peru
PF French Polynesia|PG Papua New Guinea|PH Philippines|PK Pakistan|PL Poland|PM Saint Pierre and Miquelon|PN Pitcairn|PR Puerto Rico
PS Palestine/State of Palestine|PT Portugal|PW Palau|PY Paraguay|QA Qatar|RE Réunion|RO Romania|RS Serbia|RU Russia/Russian Federation
RW Rwanda|SA Saudi Arabia|SB Solomon Islands|SC Seychelles|SD Sudan|SE Sweden|SG Singapore
SH Saint Helena, Ascension and Tristan da Cunha|SI Slovenia|SJ Svalbard and Jan Mayen|SK Slovakia|SL Sierra Leone|SM San Marino|SN Senegal
SO Somalia|SR Suriname|SS South Sudan|ST Sao Tome and Principe|SV El Salvador|SX Sint Maarten (Dutch part)|SY Syria/Syrian Arab Republic
SZ Eswatini|TC Turks and Caicos Islands|TD Chad|TF French Southern Territories|TG Togo|TH Thailand|TJ Tajikistan|TK Tokelau
TL Timor-Leste|TM Turkmenistan|TN Tunisia|TO Tonga|TR Türkiye/Turkey|TT Trinidad and Tobago|TV Tuvalu|TW Taiwan
TZ Tanzania/United Republic of Tanzania|UA Ukraine|UG Uganda|UM United States Minor Outlying Islands
US United States/United States of America|UY Uruguay|UZ Uzbekistan|VA Holy See/Vatican City|VC Saint Vincent and the Grenadines|VE Venezuela
VG British Virgin Islands|VI U.S. Virgin Islands|VN Vietnam/Viet Nam|VU Vanuatu|WF Wallis and Futuna|WS Samoa|YE Yemen|YT Mayotte
ZA South Africa|ZM Zambia|ZW Zimbabwe`

const byCode = new Map<string, Country>()
const byName = new Map<string, Country>()
for (const entry of table.trim().split(/[|\n]/)) {
  const [countryName = '', ...others] = entry.slice(3).split('/')
  const country = { countryCode: entry.slice(0, 2), countryName }
  byCode.set(country.countryCode, country)
  for (const name of [countryName, ...others]) byName.set(name, country)
}
