// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";

/// A hostile wallet accepts every signature (ERC-1271). It burns all its gas in real transactions, and everywhere once it is armed.
contract BurningWallet is IERC1271 {
    bool public armed;
    bool public immutable naive;

    constructor(bool naive_) {
        naive = naive_;
    }

    function isValidSignature(bytes32, bytes calldata) external view returns (bytes4) {
        if (armed || (naive && tx.gasprice > 0)) {
            assembly ("memory-safe") {
                invalid()
            }
        }
        return IERC1271.isValidSignature.selector;
    }
}
