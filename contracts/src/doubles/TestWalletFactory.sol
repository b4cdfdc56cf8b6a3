// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {TestWallet} from "./TestWallet.sol";

/// Deploys the wallet of a holder at an address that is known before (CREATE2), for signatures of wallets without code (ERC-6492).
contract TestWalletFactory {
    function deploy(address holder) external returns (address) {
        return address(new TestWallet{salt: 0}(holder));
    }
}
