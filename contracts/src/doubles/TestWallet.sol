// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";

/// The smallest smart account: its holder's signature counts as its own (ERC-1271), and its holder acts through it.
contract TestWallet is IERC1271 {
    address public immutable holder;

    error NotHolder(address account);

    constructor(address holder_) {
        holder = holder_;
    }

    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        (address signer, ECDSA.RecoverError fault,) = ECDSA.tryRecoverCalldata(hash, signature);
        bool valid = fault == ECDSA.RecoverError.NoError && signer == holder;
        return valid ? IERC1271.isValidSignature.selector : bytes4(0xffffffff);
    }

    /// Sends any call from this account; a revert comes back as it is.
    function execute(address target, bytes calldata data) external returns (bytes memory) {
        if (msg.sender != holder) revert NotHolder(msg.sender);
        (bool success, bytes memory result) = target.call(data);
        if (!success) {
            assembly ("memory-safe") {
                revert(add(result, 32), mload(result))
            }
        }
        return result;
    }
}
